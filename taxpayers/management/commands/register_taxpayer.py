"""`register_taxpayer TIN [--rob ROB] --name NAME` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_tin_and_rob, read_tin_and_rob
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author, register_taxpayer
from taxpayers.services.taxpayers import REGISTER_TAXPAYER


class Command(ServiceCommand):
    operation = REGISTER_TAXPAYER
    note = "Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_tin_and_rob(parser)
        parser.add_argument("--name", required=True, help="name of the taxpayer, for staff")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        row = register_taxpayer(
            taxpayer=read_tin_and_rob(options), name=options["name"], by=by, at=at
        )
        return Output(
            {"taxpayer": row.identifier, "name": row.name, "is_active": row.is_active},
            f"{row.identifier} is registered as {row.name}.\n"
            f"Next, for its ERP: manage.py issue_credentials {row.identifier} --name NAME",
        )
