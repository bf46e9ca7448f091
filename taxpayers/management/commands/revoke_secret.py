"""`revoke_secret CLIENT_ID SECRET_HINT` (contract 6)."""

from django.utils import timezone

from taxpayers.management.command import Output
from taxpayers.management.operation_command import CredentialCommand, Options
from taxpayers.models import Credential, SystemUser
from taxpayers.moments import format_moment
from taxpayers.services.credential_changes import REVOKE_SECRET


class Command(CredentialCommand):
    operation = REVOKE_SECRET

    def answer(self, done: Credential, options: Options) -> Output:
        owner, at = done.system_user, timezone.now()
        live = [other for other in owner.credentials.all() if other.is_live(at)]
        kind, following = _next(owner)
        left = (
            f"It still has {live[0]}."
            if live
            else f"It has no other live {kind}, so it cannot log in. Next: manage.py {following}"
        )
        revoked = format_moment(done.revoked_at or at)
        return Output(
            {
                "client_id": owner.client_id,
                "secret_hint": done.hint,
                "revoked_at": done.revoked_at,
                "live_secrets": [other.hint for other in live],
            },
            f"{done} of {owner.client_id} was revoked {revoked}. {left}",
        )


def _next(owner: SystemUser) -> tuple[str, str]:
    """What it logs in with, and the command for one more of these."""
    if owner.uses_key:
        return "key", f"register_client_key {owner.client_id} FILE"
    if owner.uses_certificate:
        return "certificate", f"register_client_certificate {owner.client_id} --certificate FILE"
    return "secret", f"rotate_secret {owner.client_id}"
