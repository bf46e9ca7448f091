"""`deactivate_protected_api API` (contract 2)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.services import Author
from tokens.management.protected_api_command import add_protected_api, find_protected_api
from tokens.protected_apis.registration import set_protected_api_active


class Command(ServiceCommand):
    help = "Deactivate a protected API: whatever it asks is refused from now on. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_protected_api(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        row = set_protected_api_active(
            protected_api=find_protected_api(options["api"]),
            is_active=False,
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Answer(
            {"client_id": row.client_id, "name": row.name, "is_active": row.is_active},
            f"{row} is not active. Whatever it asks is refused.",
        )
