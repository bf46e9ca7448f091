"""`revoke_permission --taxpayer … --intermediary … [--permission CODE…]` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_taxpayer_and_intermediary
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.management.find_records import find_intermediary, find_taxpayer
from taxpayers.services import Author, revoke_codes
from taxpayers.services.granted_permissions import REVOKE_CODES, codes_of


class Command(ServiceCommand):
    operation = REVOKE_CODES
    note = "Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_taxpayer_and_intermediary(parser)
        parser.add_argument(
            "--permission",
            metavar="CODE",
            nargs="+",
            action="extend",
            default=[],
            help="what to revoke; omitted: everything",
        )
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        taxpayer, intermediary = options["taxpayer"], options["intermediary"]
        ended = revoke_codes(
            taxpayer=find_taxpayer(taxpayer),
            intermediary=find_intermediary(intermediary),
            codes=options["permission"],
            reason=options["reason"],
            by=by,
            at=at,
        )
        ended_codes = {code for row in ended for code in codes_of(row)}
        revoked = sorted(ended_codes.intersection(options["permission"] or ended_codes))
        return Output(
            {"taxpayer": taxpayer, "intermediary": intermediary, "revoked": revoked},
            f"Revoked: {intermediary} no longer has {', '.join(revoked)} from {taxpayer}."
            if revoked
            else f"Nothing to do: {intermediary} no longer has any of that from {taxpayer}.",
        )
