"""`register_client_certificate CLIENT_ID --certificate FILE`: one more certificate of a client."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_certificate_name, add_end, certificate_name
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options, SystemUserCommand
from taxpayers.management.shown_credentials import shown_credentials
from taxpayers.models import Credential
from taxpayers.services.login_method.certificates import REGISTER_CLIENT_CERTIFICATE


class Command(SystemUserCommand):
    operation = REGISTER_CLIENT_CERTIFICATE
    note = ""

    def add_options(self, parser: CommandParser) -> None:
        add_certificate_name(parser, required=True)
        add_end(parser, "--expires", "expires_at", "last day of the registration")

    def given(self, options: Options) -> dict[str, Any]:
        return {"expires_at": options["expires_at"], **certificate_name(options)}

    def answer(self, done: Credential, options: Options) -> Output:
        return shown_credentials(done.system_user)
