"""`revoke_permission --taxpayer … --intermediary … [--permission CODE…]` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_taxpayer_and_intermediary
from taxpayers.management.command import NO_REASON, Answer, ServiceCommand
from taxpayers.management.lookups import find_intermediary, find_taxpayer
from taxpayers.services import Author, revoke_codes
from taxpayers.services.permissions import codes_of


class Command(ServiceCommand):
    help = "Take permissions from an intermediary, now. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_taxpayer_and_intermediary(parser)
        parser.add_argument(
            "--permission",
            metavar="CODE",
            nargs="+",
            action="extend",
            default=[],
            help="what to take; omitted: everything",
        )
        parser.add_argument("--reason", metavar="TEXT", default=NO_REASON, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        taxpayer, intermediary = options["taxpayer"], options["intermediary"]
        ended = revoke_codes(
            taxpayer=find_taxpayer(taxpayer),
            intermediary=find_intermediary(intermediary),
            codes=options["permission"],
            reason=options["reason"],
            by=by,
            at=at,
        )
        held = {code for row in ended for code in codes_of(row)}
        taken = sorted(held.intersection(options["permission"]) if options["permission"] else held)
        return Answer(
            {"taxpayer": taxpayer, "intermediary": intermediary, "revoked": taken},
            f"Revoked: {intermediary} no longer has {', '.join(taken)} from {taxpayer}."
            if taken
            else f"Nothing to do: {intermediary} has nothing of that from {taxpayer} any more.",
        )
