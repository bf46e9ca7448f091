"""`rotate_webhook_secret ID`: a new secret; the present one signs for a day as well."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import ROTATE_WEBHOOK_SECRET, rotate_webhook_secret
from identity.webhooks.management.webhook_command import (
    add_webhook,
    find_webhook,
    issued_data,
    issued_text,
)
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.services import Author


class Command(ServiceCommand):
    operation = ROTATE_WEBHOOK_SECRET

    def add_arguments(self, parser: CommandParser) -> None:
        add_webhook(parser)
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        issued = rotate_webhook_secret(
            endpoint=find_webhook(options["webhook"]), reason=options["reason"], by=by, at=at
        )
        return Output(issued_data(issued), issued_text(issued))
