"""`register_intermediary TIN [--rob ROB] [--until DATE]` (contract 6)."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_end, read_tin_and_rob
from taxpayers.management.find_records import find_taxpayer
from taxpayers.management.operation_command import Options, TaxpayerCommand
from taxpayers.models import Intermediary
from taxpayers.moments import format_moment
from taxpayers.services.intermediaries import REGISTER_INTERMEDIARY


class Command(TaxpayerCommand):
    operation = REGISTER_INTERMEDIARY
    takes_reason = False

    def add_options(self, parser: CommandParser) -> None:
        add_end(parser, "--until", "until", "last day; omitted: no end date")

    def given(self, options: Options) -> dict[str, Any]:
        taxpayer = find_taxpayer(read_tin_and_rob(options))
        return {"taxpayer": taxpayer, "until": options["until"]}

    def data(self, row: Intermediary) -> dict[str, Any]:
        return {
            "intermediary": row.taxpayer.identifier,
            "is_active": row.is_active,
            "active_until": row.active_until,
        }

    def text(self, row: Intermediary) -> str:
        name = row.taxpayer.identifier
        until = f" until {format_moment(row.active_until)}" if row.active_until else ""
        return (
            f"{name} ({row.taxpayer.name}) is an intermediary{until}.\n"
            f"Next, for each taxpayer that it acts for: manage.py grant_permission"
            f" --taxpayer TIN --intermediary {name} --permission documents:submit"
        )
