"""`show KIND NAME`: one record, with every field."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from identity.api.management.operator_records import KINDS, cell, record_of
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author


class Command(ServiceCommand):
    help = "Show a record, with the names and values of the management API. " + " ".join(
        f"{name}: {kind.names}" for name, kind in KINDS.items()
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=KINDS)
        parser.add_argument("name", metavar="NAME", help="what names it, see above")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        kind = KINDS[options["kind"]]
        row = kind.find(options["name"])
        if row is None:
            raise CommandError(f"There is no {kind.singular} {options['name']}.")
        record = record_of(kind.record, row, at)
        return Output(record, "\n".join(f"{name}: {cell(value)}" for name, value in record.items()))
