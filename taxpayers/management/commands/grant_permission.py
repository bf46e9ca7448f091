"""`grant_permission --taxpayer … --intermediary … --permission CODE… [--from] [--until]`."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_end, add_taxpayer_and_intermediary, parse_start
from taxpayers.management.find_records import find_intermediary, find_taxpayer
from taxpayers.management.operation_command import PAPER_FORM, OperationCommand, Options
from taxpayers.models import GrantedPermission
from taxpayers.moments import format_moment
from taxpayers.services.granted_permissions import GRANT_PERMISSION, codes_of


class Command(OperationCommand):
    operation = GRANT_PERMISSION
    fields = {"evidence": PAPER_FORM}
    takes_reason = False

    def add_record(self, parser: CommandParser) -> None:
        add_taxpayer_and_intermediary(parser)
        parser.add_argument(
            "--permission",
            dest="codes",
            metavar="CODE",
            nargs="+",
            action="extend",
            required=True,
            help="what it may do, for example documents:submit",
        )
        parser.add_argument(
            "--from",
            dest="valid_from",
            metavar="DATE",
            type=parse_start,
            help="first day; omitted: from now on",
        )
        add_end(parser, "--until", "valid_until", "last day; omitted: no end date")

    def given(self, options: Options) -> dict[str, Any]:
        return {
            "taxpayer": find_taxpayer(options["taxpayer"]),
            "intermediary": find_intermediary(options["intermediary"]),
            **{name: options[name] for name in ("codes", "valid_from", "valid_until")},
            **super().given(options),
        }

    def data(self, row: GrantedPermission) -> dict[str, Any]:
        return {
            "taxpayer": row.taxpayer.identifier,
            "intermediary": row.intermediary.taxpayer.identifier,
            "permissions": codes_of(row),
            "valid_from": row.valid_from,
            "valid_until": row.valid_until,
        }

    def text(self, row: GrantedPermission) -> str:
        taxpayer = row.taxpayer.identifier
        until = (
            f" until {format_moment(row.valid_until)}" if row.valid_until else ", with no end date"
        )
        return (
            f"{row.intermediary.taxpayer.identifier} may act for {taxpayer} from"
            f" {format_moment(row.valid_from)}{until}: {', '.join(codes_of(row))}.\n"
            f"Its ERP logs in with the header onbehalfof: {taxpayer}"
        )
