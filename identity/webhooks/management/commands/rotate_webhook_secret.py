"""`rotate_webhook_secret ID`: a new secret; the present one signs for a day as well."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import rotate_webhook_secret
from identity.webhooks.management.webhook_command import (
    add_webhook,
    find_webhook,
    issued_data,
    issued_text,
)
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.services import Author


class Command(ServiceCommand):
    help = (
        "Issue a new secret of a webhook and show it once. For a day messages are signed with the"
        " present one, too."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_webhook(parser)
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        issued = rotate_webhook_secret(
            endpoint=find_webhook(options["webhook"]), reason=options["reason"], by=by, at=at
        )
        return Output(issued_data(issued), issued_text(issued))
