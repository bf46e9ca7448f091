"""`rename_taxpayer TIN [--rob ROB] --name NAME` (contract 6)."""

from django.core.management.base import CommandParser

from taxpayers.management.operation_command import TaxpayerCommand
from taxpayers.services.taxpayers import RENAME_TAXPAYER


class Command(TaxpayerCommand):
    operation = RENAME_TAXPAYER
    fields = ("name",)
    done = "{row.identifier} has the name {row.name}."

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="its new name, for staff")
