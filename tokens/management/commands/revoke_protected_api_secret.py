"""`revoke_protected_api_secret API SECRET_HINT` (contract 2 and 3)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author
from tokens.management.protected_api_command import (
    add_protected_api,
    find_api_secret,
    find_protected_api,
)
from tokens.protected_apis.registration import REVOKE_API_SECRET, live_secrets, revoke_api_secret


class Command(ServiceCommand):
    operation = REVOKE_API_SECRET
    note = "Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        add_protected_api(parser)
        parser.add_argument("hint", metavar="SECRET_HINT", help="its last four characters")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        api = find_protected_api(options["api"])
        secret = find_api_secret(api, options["hint"])
        row = revoke_api_secret(secret=secret, reason=options["reason"], by=by, at=at)
        live = live_secrets(api, at)
        left = (
            f"It still has {', '.join(map(str, live))}."
            if live
            else (
                "It has no other live secret, so it cannot ask. Next:"
                f" manage.py rotate_protected_api_secret {api.client_id}"
            )
        )
        return Output(
            {
                "client_id": api.client_id,
                "secret_hint": row.hint,
                "revoked_at": row.revoked_at,
                "live_secrets": [other.hint for other in live],
            },
            f"{row} of {api} was revoked {format_moment(row.revoked_at or at)}. {left}",
        )
