"""`rename_taxpayer TIN [--rob ROB] --name NAME` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_tin_and_rob, read_tin_and_rob
from taxpayers.management.command import NO_REASON, Answer, ServiceCommand
from taxpayers.management.find_records import find_taxpayer
from taxpayers.services import Author, rename_taxpayer


class Command(ServiceCommand):
    help = (
        "Change the name of a taxpayer. Its identifier does not change; permissions and"
        " credentials stay valid. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_tin_and_rob(parser)
        parser.add_argument("--name", required=True, help="its new name, for staff")
        parser.add_argument("--reason", metavar="TEXT", default=NO_REASON, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        row = rename_taxpayer(
            taxpayer=find_taxpayer(read_tin_and_rob(options)),
            name=options["name"],
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Answer(
            {"taxpayer": row.identifier, "name": row.name, "is_active": row.is_active},
            f"{row.identifier} has the name {row.name}.",
        )
