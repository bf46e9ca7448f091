"""`enable_webhook ID`: its receiver gets what changes from now on."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import set_webhook_active
from identity.webhooks.management.webhook_command import (
    add_webhook,
    find_webhook,
    webhook_data,
)
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.services import Author


class Command(ServiceCommand):
    help = "Send to a webhook again: what waits for it, and what changes from now on."

    def add_arguments(self, parser: CommandParser) -> None:
        add_webhook(parser)
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        row = set_webhook_active(
            endpoint=find_webhook(options["webhook"]),
            is_active=True,
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Output(webhook_data(row), f"{row} gets what changes from now on.")
