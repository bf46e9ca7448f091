"""`register_client_key CLIENT_ID FILE [--expires DATE]`: one more key of a system user."""

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_end, read_keys
from taxpayers.management.command import Output
from taxpayers.management.limit_options import add_network_options
from taxpayers.management.operation_command import Options, SystemUserCommand
from taxpayers.management.shown_credentials import shown_credentials
from taxpayers.models import Credential
from taxpayers.services.login_method.keys import REGISTER_CLIENT_KEY


class Command(SystemUserCommand):
    operation = REGISTER_CLIENT_KEY
    fields = ("keys", "expires_at", "allowed_networks")
    note = ""

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "keys",
            metavar="FILE",
            type=read_keys,
            help="the public key: JWK, JWK Set or PEM; -: stdin",
        )
        add_end(parser, "--expires", "expires_at", "last day of the key")
        add_network_options(parser, "; not given: from where the present one may")

    def answer(self, done: list[Credential], options: Options) -> Output:
        return shown_credentials(done[0].system_user)
