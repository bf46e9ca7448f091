"""`revoke_permission --taxpayer … --intermediary … [--permission CODE…]` (contract 6)."""

from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_taxpayer_and_intermediary
from taxpayers.management.command import Output
from taxpayers.management.find_records import find_intermediary, find_taxpayer
from taxpayers.management.operation_command import PAPER_FORM, OperationCommand, Options
from taxpayers.models import GrantedPermission
from taxpayers.services.granted_permissions import REVOKE_CODES, codes_of


class Command(OperationCommand):
    operation = REVOKE_CODES
    fields = {"evidence": PAPER_FORM}

    def add_record(self, parser: CommandParser) -> None:
        add_taxpayer_and_intermediary(parser)
        parser.add_argument(
            "--permission",
            dest="codes",
            metavar="CODE",
            nargs="+",
            action="extend",
            default=[],
            help="what to revoke; omitted: everything",
        )

    def given(self, options: Options) -> dict[str, Any]:
        return {
            "taxpayer": find_taxpayer(options["taxpayer"]),
            "intermediary": find_intermediary(options["intermediary"]),
            "codes": options["codes"],
            **super().given(options),
        }

    def answer(self, done: list[GrantedPermission], options: Options) -> Output:
        taxpayer, intermediary = options["taxpayer"], options["intermediary"]
        ended_codes = {code for row in done for code in codes_of(row)}
        revoked = sorted(ended_codes.intersection(options["codes"] or ended_codes))
        return Output(
            {"taxpayer": taxpayer, "intermediary": intermediary, "revoked": revoked},
            f"Revoked: {intermediary} no longer has {', '.join(revoked)} from {taxpayer}."
            if revoked
            else f"Nothing to do: {intermediary} no longer has any of that from {taxpayer}.",
        )
