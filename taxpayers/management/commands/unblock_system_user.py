"""`unblock_system_user CLIENT_ID --reason TEXT` (contract 6)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.management.find_records import find_system_user
from taxpayers.services import Author, unblock_system_user


class Command(ServiceCommand):
    help = "Unblock a system user: it may log in again. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("client_id", metavar="CLIENT_ID")
        parser.add_argument("--reason", metavar="TEXT", required=True, help="for the history")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        owner = find_system_user(options["client_id"])
        row = unblock_system_user(system_user=owner, reason=options["reason"], by=by, at=at)
        return Answer(
            {"client_id": row.client_id, "blocked_at": None},
            f"{row.client_id} ({row.name}) is not blocked: it may log in.",
        )
