"""`grant_permission --taxpayer … --intermediary … --permission CODE… [--from] [--until]`."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_taxpayer_and_intermediary, first_moment, last_moment
from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.management.lookups import find_intermediary, find_taxpayer
from taxpayers.services import Author, grant_permission
from taxpayers.services.permissions import codes_of
from taxpayers.validation import format_moment


class Command(ServiceCommand):
    help = "Permit an intermediary to act for a taxpayer. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_taxpayer_and_intermediary(parser)
        parser.add_argument(
            "--permission", metavar="CODE", nargs="+", action="extend", required=True
        )
        parser.add_argument(
            "--from", metavar="DATE", type=first_moment, help="its first day; omitted: from now on"
        )
        parser.add_argument("--until", metavar="DATE", type=last_moment, help="its last day")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        row = grant_permission(
            taxpayer=find_taxpayer(options["taxpayer"]),
            intermediary=find_intermediary(options["intermediary"]),
            codes=options["permission"],
            valid_from=options["from"],
            valid_until=options["until"],
            by=by,
            at=at,
        )
        codes = codes_of(row)
        until = (
            f" until {format_moment(row.valid_until)}" if row.valid_until else ", without an end"
        )
        return Answer(
            {
                "taxpayer": options["taxpayer"],
                "intermediary": options["intermediary"],
                "permissions": codes,
                "valid_from": row.valid_from,
                "valid_until": row.valid_until,
            },
            f"{options['intermediary']} may act for {options['taxpayer']} from"
            f" {format_moment(row.valid_from)}{until}: {', '.join(codes)}.\n"
            f"Its ERP logs in with the header onbehalfof: {options['taxpayer']}",
        )
