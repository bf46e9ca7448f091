"""`rename_taxpayer TIN [--rob ROB] --name NAME` (contract 6)."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.taxpayer_command import TaxpayerCommand
from taxpayers.models import Taxpayer
from taxpayers.services import rename_taxpayer


class Command(TaxpayerCommand):
    help = (
        "Change the name of a taxpayer. Its identifier does not change; permissions and"
        " credentials stay valid. Safe to repeat."
    )
    text = "{row.identifier} has the name {row.name}."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--name", required=True, help="its new name, for staff")

    def change(self, options: dict[str, Any], **who: Any) -> Taxpayer:
        return rename_taxpayer(name=options["name"], **who)
