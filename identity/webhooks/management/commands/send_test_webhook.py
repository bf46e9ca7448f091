"""`send_test_webhook ID`: sends a webhook.test event to it, as soon as a deliverer runs."""

from datetime import datetime

from identity.webhooks.endpoints import SEND_TEST, send_test
from identity.webhooks.management.webhook_command import WebhookCommand
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options
from taxpayers.services import Author


class Command(WebhookCommand):
    operation = SEND_TEST
    note = "list_webhooks shows what it has answered."
    takes_reason = False

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        name = send_test(endpoint=self.find(options), at=at).event.message_id
        return Output(
            {"webhook_id": name},
            f"{name} is sent as soon as deliver_webhooks runs. Then see list_webhooks.",
        )
