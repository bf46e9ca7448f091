"""`send_test_webhook ID [--event TYPE…]`: sends webhook.test to it, or samples of these types."""

from datetime import datetime

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import SEND_TEST, send_test
from identity.webhooks.event_types import EVENT_TYPES
from identity.webhooks.management.webhook_command import WebhookCommand
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options
from taxpayers.services import Author


class Command(WebhookCommand):
    operation = SEND_TEST
    note = "list_webhooks shows what it has answered."
    takes_reason = False

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--event",
            dest="event_types",
            nargs="+",
            default=(),
            metavar="TYPE",
            help="a sample of each of these types; all: of every type",
        )

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        given = options["event_types"]
        types = EVENT_TYPES if list(given) == ["all"] else given
        sent = send_test(endpoint=self.find(options), event_types=types, at=at)
        names = [delivery.event.message_id for delivery in sent]
        return Output(
            {"webhook_ids": names} if given else {"webhook_id": names[0]},
            f"{', '.join(names)}: sent as soon as deliver_webhooks runs. Then see list_webhooks.",
        )
