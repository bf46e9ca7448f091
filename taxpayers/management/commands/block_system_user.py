"""`block_system_user CLIENT_ID --reason TEXT` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.management.find_records import find_system_user
from taxpayers.moments import format_moment
from taxpayers.services import Author, block_system_user


class Command(ServiceCommand):
    help = "Block a system user: all its logins are refused from now on. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument("--reason", metavar="TEXT", required=True, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        owner = find_system_user(options["client_id"])
        row = block_system_user(system_user=owner, reason=options["reason"], by=by, at=at)
        since = format_moment(row.blocked_at or at)
        return Answer(
            {
                "client_id": row.client_id,
                "blocked_at": row.blocked_at,
                "blocked_by": row.blocked_by,
                "blocked_reason": row.blocked_reason,
            },
            f"{row.client_id} ({row.name}) has been blocked since {since} by {row.blocked_by}:"
            f" {row.blocked_reason}\n"
            "Its logins are refused. APIs that introspect refuse its tokens at once, others accept"
            " them for one hour at most.",
        )
