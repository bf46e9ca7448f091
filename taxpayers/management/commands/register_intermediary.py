"""`register_intermediary TIN [--rob ROB] [--until DATE]` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_tin_and_rob, last_moment, tin_and_rob
from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.management.lookups import find_taxpayer
from taxpayers.services import Author, register_intermediary
from taxpayers.validation import format_moment


class Command(ServiceCommand):
    help = "Make a registered taxpayer an intermediary, who acts for others. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_tin_and_rob(parser)
        parser.add_argument("--until", metavar="DATE", type=last_moment, help="its last day")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        taxpayer = find_taxpayer(tin_and_rob(options))
        row = register_intermediary(taxpayer=taxpayer, until=options["until"], by=by, at=at)
        name = taxpayer.identifier
        until = f" until {format_moment(row.active_until)}" if row.active_until else ""
        return Answer(
            {"intermediary": name, "is_active": row.is_active, "active_until": row.active_until},
            f"{name} ({taxpayer.name}) is an intermediary{until}.\n"
            f"Next, for each taxpayer that it acts for: manage.py grant_permission"
            f" --taxpayer TIN --intermediary {name} --permission documents:submit",
        )
