"""`revoke_protected_api_secret API SECRET_HINT` (contract 2 and 3)."""

from django.core.management.base import CommandParser
from django.utils import timezone

from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options
from taxpayers.moments import format_moment
from tokens.management.protected_api_command import ProtectedApiCommand, find_api_secret
from tokens.models import ProtectedApiSecret
from tokens.protected_apis.registration import REVOKE_API_SECRET, live_secrets


class Command(ProtectedApiCommand):
    operation = REVOKE_API_SECRET

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("hint", metavar="SECRET_HINT", help="its last four characters")

    def find(self, options: Options) -> ProtectedApiSecret:
        return find_api_secret(super().find(options), options["hint"])

    def answer(self, done: ProtectedApiSecret, options: Options) -> Output:
        api, at = done.protected_api, timezone.now()
        live = live_secrets(api, at)
        left = (
            f"It still has {', '.join(map(str, live))}."
            if live
            else (
                "It has no other live secret, so it cannot ask. Next:"
                f" manage.py rotate_protected_api_secret {api.client_id}"
            )
        )
        return Output(
            {
                "client_id": api.client_id,
                "secret_hint": done.hint,
                "revoked_at": done.revoked_at,
                "live_secrets": [other.hint for other in live],
            },
            f"{done} of {api} was revoked {format_moment(done.revoked_at or at)}. {left}",
        )
