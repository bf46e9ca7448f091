"""`register_client_key CLIENT_ID FILE [--expires DATE]`: one more key of a system user."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import parse_end, read_keys
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.management.find_records import find_system_user
from taxpayers.management.limit_options import add_network_options, read_networks
from taxpayers.management.shown_keys import keys_data, keys_text
from taxpayers.services import Author, register_client_keys
from taxpayers.services.login_method.keys import REGISTER_CLIENT_KEY


class Command(ServiceCommand):
    operation = REGISTER_CLIENT_KEY

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument(
            "keys",
            metavar="FILE",
            type=read_keys,
            help="the public key: JWK, JWK Set or PEM; -: stdin",
        )
        parser.add_argument("--expires", metavar="DATE", type=parse_end, help="last day of the key")
        add_network_options(parser, "; not given: from where the present one may")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        owner = find_system_user(options["client_id"])
        register_client_keys(
            system_user=owner,
            keys=options["keys"],
            expires_at=options["expires"],
            allowed_networks=read_networks(options),
            by=by,
            at=at,
        )
        return Output(keys_data(owner), keys_text(owner))
