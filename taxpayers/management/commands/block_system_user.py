"""`block_system_user CLIENT_ID --reason TEXT` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.management.lookups import find_system_user
from taxpayers.services import Author, block_system_user
from taxpayers.validation import format_moment


class Command(ServiceCommand):
    help = "Refuse a system user every login from now on. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument("--reason", metavar="TEXT", required=True, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        owner = find_system_user(options["client_id"])
        row = block_system_user(system_user=owner, reason=options["reason"], by=by, at=at)
        assert row.blocked_at is not None  # noqa: S101 - the service has just seen to it
        return Answer(
            {
                "client_id": row.client_id,
                "blocked_at": row.blocked_at,
                "blocked_by": row.blocked_by,
                "blocked_reason": row.blocked_reason,
            },
            f"{row.client_id} ({row.name}) is blocked since {format_moment(row.blocked_at)} by"
            f" {row.blocked_by}: {row.blocked_reason}\n"
            "Its logins are refused; tokens that it has stay valid for an hour at most.",
        )
