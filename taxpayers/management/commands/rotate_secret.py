"""`rotate_secret CLIENT_ID [--secret-expires DATE] [--retire-old DATE] …` (contract 6)."""

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_end
from taxpayers.management.command import Output
from taxpayers.management.limit_options import add_network_options
from taxpayers.management.operation_command import Options, SystemUserCommand
from taxpayers.moments import format_moment
from taxpayers.secret_once import secret_data, secret_text
from taxpayers.services import IssuedSecret
from taxpayers.services.credential_changes import ROTATE_SECRET


class Command(SystemUserCommand):
    operation = ROTATE_SECRET
    fields = ("expires_at", "retire_old_at", "allowed_networks")
    note = ""

    def add_options(self, parser: CommandParser) -> None:
        add_end(parser, "--secret-expires", "expires_at", "last day of the new secret")
        add_end(parser, "--retire-old", "retire_old_at", "last day of the old secret")
        add_network_options(parser, "; not given: from where the present one may")

    def answer(self, done: IssuedSecret, options: Options) -> Output:
        present = done.system_user.credentials.filter(slot__isnull=False)
        secrets = present.exclude(pk=done.secret.pk)
        old = [{"secret_hint": s.hint, "secret_expires_at": s.expires_at} for s in secrets]
        old_text = "".join(
            f"\nThe old secret {s} works until {format_moment(s.expires_at)}."
            f" When the ERP has changed over:"
            f" manage.py revoke_secret {done.system_user.client_id} {s.hint}"
            for s in secrets
        )
        return Output(secret_data(done) | {"old": old}, secret_text(done) + old_text)
