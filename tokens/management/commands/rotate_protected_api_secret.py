"""`rotate_protected_api_secret API`: another secret beside the present one (contract 3)."""

from django.core.management.base import CommandParser
from django.utils import timezone

from taxpayers.management.arguments import add_end
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options
from taxpayers.moments import format_moment
from tokens.management.protected_api_command import ProtectedApiCommand
from tokens.protected_apis.registration import ROTATE_API_SECRET, IssuedApiSecret, live_secrets
from tokens.protected_apis.secret_once import api_secret_data, api_secret_text


class Command(ProtectedApiCommand):
    operation = ROTATE_API_SECRET
    fields = ("expires_at", "retire_old_at")
    note = ""

    def add_options(self, parser: CommandParser) -> None:
        add_end(parser, "--secret-expires", "expires_at", "last day of the new secret")
        add_end(parser, "--retire-old", "retire_old_at", "last day of the old secret")

    def answer(self, done: IssuedApiSecret, options: Options) -> Output:
        api = done.protected_api
        old = [s for s in live_secrets(api, timezone.now()) if s.pk != done.secret.pk]
        data = [{"secret_hint": s.hint, "secret_expires_at": s.expires_at} for s in old]
        text = "".join(
            f"\nThe old secret {s} works until {format_moment(s.expires_at)}."
            f" When the API has changed over:"
            f" manage.py revoke_protected_api_secret {api.client_id} {s.hint}"
            for s in old
        )
        return Output(api_secret_data(done) | {"old": data}, api_secret_text(done) + text)
