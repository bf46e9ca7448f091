"""`change_secret CLIENT_ID SECRET_HINT --from-network NETWORK…`: from where it may be used."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.find_records import find_secret, find_system_user
from taxpayers.management.limit_options import add_network_options, networks_text, read_networks
from taxpayers.services import Author, change_credential
from taxpayers.services.limits.source_networks import CHANGE_SECRET


class Command(ServiceCommand):
    operation = CHANGE_SECRET
    note = "Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument(
            "hint",
            metavar="SECRET_HINT",
            help="its last four characters; of a key, the end of its kid",
        )
        add_network_options(parser, required=True)
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        owner = find_system_user(options["client_id"])
        row = change_credential(
            credential=find_secret(owner, options["hint"]),
            allowed_networks=read_networks(options) or (),
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Output(
            {
                "client_id": owner.client_id,
                "secret_hint": row.hint,
                "allowed_networks": row.allowed_networks.split(),
            },
            f"{row} of {owner.client_id} may be used {networks_text(row)}.",
        )
