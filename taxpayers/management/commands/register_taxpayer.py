"""`register_taxpayer TIN [--rob ROB] --name NAME` (contract 6)."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import read_tin_and_rob
from taxpayers.management.operation_command import Options, TaxpayerCommand
from taxpayers.services.taxpayers import REGISTER_TAXPAYER


class Command(TaxpayerCommand):
    operation = REGISTER_TAXPAYER
    takes_reason = False
    done = (
        "{row.identifier} is registered as {row.name}.\n"
        "Next, for its ERP: manage.py issue_credentials {row.identifier} --name NAME"
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="name of the taxpayer, for staff")

    def given(self, options: Options) -> dict[str, Any]:
        return {"taxpayer": read_tin_and_rob(options), "name": options["name"]}
