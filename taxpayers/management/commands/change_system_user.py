"""`change_system_user CLIENT_ID [--name] [--logins-per-minute] [--scope S…] [--expires DATE]`."""

from argparse import SUPPRESS
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from taxpayers.management.arguments import NEVER, parse_end_or_never
from taxpayers.management.command import NO_REASON, Answer, ServiceCommand
from taxpayers.management.find_records import find_system_user
from taxpayers.models import SystemUser
from taxpayers.moments import format_moment
from taxpayers.services import Author, change_system_user, extend_system_user

_FIELDS = ("name", "scopes", "logins_per_minute")


class Command(ServiceCommand):
    help = (
        "Change the name, the limit, the scopes or the last day of a system user: all that is"
        " given, or nothing. It applies to every login from now on. Safe to repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        # What is not given is not among the options, so that it stays as it is.
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument("--name", default=SUPPRESS, help="name of the ERP system, for staff")
        parser.add_argument(
            "--logins-per-minute",
            metavar="N",
            type=int,
            default=SUPPRESS,
            help="0: unlimited, still counted",
        )
        parser.add_argument(
            "--scope",
            metavar="S",
            nargs="+",
            action="extend",
            dest="scopes",
            default=SUPPRESS,
            help="all scopes that it may ask for; others are removed",
        )
        parser.add_argument(
            "--expires",
            metavar="DATE",
            type=parse_end_or_never,
            default=SUPPRESS,
            help=f"last day of the system user; {NEVER}: remove it, so that it does not expire",
        )
        parser.add_argument("--reason", metavar="TEXT", default=NO_REASON, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        row = _change(find_system_user(options["client_id"]), options, by, at)
        expires = f"until {format_moment(row.expires_at)}" if row.expires_at else "no end date"
        limit = (
            f"{row.logins_per_minute} logins per minute" if row.logins_per_minute else "no limit"
        )
        return Answer(
            {
                "client_id": row.client_id,
                "name": row.name,
                "scopes": row.scopes.split(),
                "logins_per_minute": row.logins_per_minute,
                "expires_at": row.expires_at,
            },
            f"{row.client_id} ({row.name}): {limit}, {expires}, scopes {row.scopes}.",
        )


@transaction.atomic
def _change(row: SystemUser, options: dict[str, Any], by: Author, at: datetime) -> SystemUser:
    fields = {name: options[name] for name in _FIELDS if name in options}
    if not fields and "expires" not in options:
        raise CommandError(
            "Nothing to change: give --name, --logins-per-minute, --scope or --expires."
        )
    reason = options["reason"]
    if fields:
        row = change_system_user(system_user=row, reason=reason, by=by, at=at, **fields)
    if "expires" in options:
        row = extend_system_user(
            system_user=row, expires_at=options["expires"], reason=reason, by=by, at=at
        )
    return row
