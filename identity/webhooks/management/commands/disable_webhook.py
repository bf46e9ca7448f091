"""`disable_webhook ID`: its receiver gets nothing."""

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
    help = "Send nothing to a webhook. What waits is sent when it is enabled again."

    def add_arguments(self, parser: CommandParser) -> None:
        add_webhook(parser)
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        row = set_webhook_active(
            endpoint=find_webhook(options["webhook"]),
            is_active=False,
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Output(webhook_data(row), f"{row} gets nothing.")
