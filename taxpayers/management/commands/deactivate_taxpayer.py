"""`deactivate_taxpayer TIN [--rob ROB]` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_tin_and_rob, read_tin_and_rob
from taxpayers.management.command import NO_REASON, Answer, ServiceCommand
from taxpayers.management.find_records import find_taxpayer
from taxpayers.services import Author, set_taxpayer_active


class Command(ServiceCommand):
    help = (
        "Deactivate a taxpayer: from now on nobody logs in for it, neither its own system users nor"
        " an intermediary, and its system users cannot log in for others. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_tin_and_rob(parser)
        parser.add_argument("--reason", metavar="TEXT", default=NO_REASON, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        row = set_taxpayer_active(
            taxpayer=find_taxpayer(read_tin_and_rob(options)),
            is_active=False,
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Answer(
            {"taxpayer": row.identifier, "name": row.name, "is_active": row.is_active},
            f"{row.identifier} ({row.name}) is not active: nobody can log in for it.\n"
            "Tokens that were already issued stay valid for one hour at most.",
        )
