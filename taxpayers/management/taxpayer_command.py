"""The base of the commands that change one taxpayer (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_tin_and_rob, read_tin_and_rob
from taxpayers.management.command import NO_REASON, Answer, ServiceCommand
from taxpayers.management.find_records import find_taxpayer
from taxpayers.models import Taxpayer
from taxpayers.services import Author


class TaxpayerCommand(ServiceCommand):
    """`TIN [--rob ROB] [--reason TEXT]`; a command overrides `change` and `text`."""

    text = ""  # the answer for people, of the taxpayer `row`

    def add_arguments(self, parser: CommandParser) -> None:
        add_tin_and_rob(parser)
        parser.add_argument("--reason", metavar="TEXT", default=NO_REASON, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        row = self.change(
            options,
            taxpayer=find_taxpayer(read_tin_and_rob(options)),
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Answer(
            {"taxpayer": row.identifier, "name": row.name, "is_active": row.is_active},
            self.text.format(row=row),
        )

    def change(self, options: dict[str, Any], **who: Any) -> Taxpayer:
        """Call the service with `who`: taxpayer, reason, by, at. Raises as `act`."""
        raise NotImplementedError
