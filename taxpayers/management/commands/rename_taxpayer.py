"""`rename_taxpayer TIN [--rob ROB] --name NAME` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Output, add_reason
from taxpayers.management.operation_command import TaxpayerCommand
from taxpayers.services import Author, rename_taxpayer
from taxpayers.services.taxpayers import RENAME_TAXPAYER


class Command(TaxpayerCommand):
    operation = RENAME_TAXPAYER

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_record(parser)
        add_reason(parser)
        parser.add_argument("--name", required=True, help="its new name, for staff")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        given = {name: options[name] for name in ("name", "reason")}
        row = rename_taxpayer(taxpayer=self.find(options), **given, by=by, at=at)
        return Output(self.data(row), f"{row.identifier} has the name {row.name}.")
