"""`revoke_secret CLIENT_ID SECRET_HINT` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.find_records import find_secret, find_system_user
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment
from taxpayers.services import Author, revoke_credential
from taxpayers.services.credential_changes import REVOKE_SECRET


class Command(ServiceCommand):
    operation = REVOKE_SECRET
    note = "Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument(
            "hint",
            metavar="SECRET_HINT",
            help="its last four characters; of a key, the end of its kid; of a certificate, as"
            " register_client_certificate shows it",
        )
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        owner = find_system_user(options["client_id"])
        secret = find_secret(owner, options["hint"])
        row = revoke_credential(credential=secret, reason=options["reason"], by=by, at=at)
        live = [other for other in owner.credentials.all() if other.is_live(at)]
        kind, following = _next(owner)
        left = (
            f"It still has {live[0]}."
            if live
            else f"It has no other live {kind}, so it cannot log in. Next: manage.py {following}"
        )
        return Output(
            {
                "client_id": owner.client_id,
                "secret_hint": row.hint,
                "revoked_at": row.revoked_at,
                "live_secrets": [other.hint for other in live],
            },
            f"{row} of {owner.client_id} was revoked {format_moment(row.revoked_at or at)}. {left}",
        )


def _next(owner: SystemUser) -> tuple[str, str]:
    """What it logs in with, and the command for one more of these."""
    if owner.uses_key:
        return "key", f"register_client_key {owner.client_id} FILE"
    if owner.uses_certificate:
        return "certificate", f"register_client_certificate {owner.client_id} --certificate FILE"
    return "secret", f"rotate_secret {owner.client_id}"
