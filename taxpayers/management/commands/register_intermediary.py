"""`register_intermediary TIN [--rob ROB] [--until DATE]` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_tin_and_rob, parse_end, read_tin_and_rob
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.management.find_records import find_taxpayer
from taxpayers.moments import format_moment
from taxpayers.services import Author, register_intermediary
from taxpayers.services.intermediaries import REGISTER_INTERMEDIARY


class Command(ServiceCommand):
    operation = REGISTER_INTERMEDIARY
    note = "Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_tin_and_rob(parser)
        parser.add_argument(
            "--until", metavar="DATE", type=parse_end, help="last day; omitted: no end date"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        taxpayer = find_taxpayer(read_tin_and_rob(options))
        row = register_intermediary(taxpayer=taxpayer, until=options["until"], by=by, at=at)
        name = taxpayer.identifier
        until = f" until {format_moment(row.active_until)}" if row.active_until else ""
        return Output(
            {"intermediary": name, "is_active": row.is_active, "active_until": row.active_until},
            f"{name} ({taxpayer.name}) is an intermediary{until}.\n"
            f"Next, for each taxpayer that it acts for: manage.py grant_permission"
            f" --taxpayer TIN --intermediary {name} --permission documents:submit",
        )
