"""`send_test_webhook ID`: sends a webhook.test event to it, as soon as a deliverer runs."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import SEND_TEST, send_test
from identity.webhooks.management.webhook_command import add_webhook, find_webhook
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author


class Command(ServiceCommand):
    operation = SEND_TEST
    note = "list_webhooks shows what it has answered."

    def add_arguments(self, parser: CommandParser) -> None:
        add_webhook(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        delivery = send_test(endpoint=find_webhook(options["webhook"]), at=at)
        name = delivery.event.message_id
        return Output(
            {"webhook_id": name},
            f"{name} is sent as soon as deliver_webhooks runs. Then see list_webhooks.",
        )
