"""`rotate_protected_api_secret API`: another secret beside the present one (contract 3)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import parse_end
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author
from tokens.management.protected_api_command import (
    add_protected_api,
    find_protected_api,
)
from tokens.protected_apis.registration import ROTATE_API_SECRET, issue_api_secret, live_secrets
from tokens.protected_apis.secret_once import api_secret_data, api_secret_text


class Command(ServiceCommand):
    operation = ROTATE_API_SECRET

    def add_arguments(self, parser: CommandParser) -> None:
        add_protected_api(parser)
        parser.add_argument(
            "--secret-expires", metavar="DATE", type=parse_end, help="last day of the new secret"
        )
        parser.add_argument(
            "--retire-old", metavar="DATE", type=parse_end, help="last day of the old secret"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        api = find_protected_api(options["api"])
        issued = issue_api_secret(
            protected_api=api,
            expires_at=options["secret_expires"],
            retire_old_at=options["retire_old"],
            reason=options["reason"],
            by=by,
            at=at,
        )
        old = [secret for secret in live_secrets(api, at) if secret.pk != issued.secret.pk]
        data = [{"secret_hint": s.hint, "secret_expires_at": s.expires_at} for s in old]
        text = "".join(
            f"\nThe old secret {s} works until {format_moment(s.expires_at)}."
            f" When the API has changed over:"
            f" manage.py revoke_protected_api_secret {api.client_id} {s.hint}"
            for s in old
        )
        return Output(api_secret_data(issued) | {"old": data}, api_secret_text(issued) + text)
