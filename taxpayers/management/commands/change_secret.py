"""`change_secret CLIENT_ID SECRET_HINT --from-network NETWORK…`: from where it may be used."""

from django.core.management.base import CommandParser

from taxpayers.management.command import Output
from taxpayers.management.limit_options import add_network_options, networks_text
from taxpayers.management.operation_command import CredentialCommand, Options
from taxpayers.models import Credential
from taxpayers.services.limits.source_networks import CHANGE_SECRET


class Command(CredentialCommand):
    operation = CHANGE_SECRET
    fields = ("allowed_networks",)

    def add_options(self, parser: CommandParser) -> None:
        add_network_options(parser, required=True)

    def answer(self, done: Credential, options: Options) -> Output:
        client_id = done.system_user.client_id
        return Output(
            {
                "client_id": client_id,
                "secret_hint": done.hint,
                "allowed_networks": done.allowed_networks.split(),
            },
            f"{done} of {client_id} may be used {networks_text(done)}.",
        )
