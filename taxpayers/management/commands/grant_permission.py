"""`grant_permission --taxpayer … --intermediary … --permission CODE… [--from] [--until]`."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_taxpayer_and_intermediary, parse_end, parse_start
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.management.find_records import find_intermediary, find_taxpayer
from taxpayers.moments import format_moment
from taxpayers.services import Author, grant_permission
from taxpayers.services.granted_permissions import GRANT_PERMISSION, codes_of


class Command(ServiceCommand):
    operation = GRANT_PERMISSION
    note = "Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_taxpayer_and_intermediary(parser)
        parser.add_argument(
            "--permission",
            metavar="CODE",
            nargs="+",
            action="extend",
            required=True,
            help="what it may do, for example documents:submit",
        )
        parser.add_argument(
            "--from", metavar="DATE", type=parse_start, help="first day; omitted: from now on"
        )
        parser.add_argument(
            "--until", metavar="DATE", type=parse_end, help="last day; omitted: no end date"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
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
            f" until {format_moment(row.valid_until)}" if row.valid_until else ", with no end date"
        )
        return Output(
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
