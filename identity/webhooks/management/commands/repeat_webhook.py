"""`repeat_webhook ID [--since DATE]`: what was given up is sent again."""

from datetime import datetime

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import REPEAT_FAILED, repeat_failed
from identity.webhooks.management.webhook_command import WebhookCommand
from taxpayers.management.arguments import parse_start
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options
from taxpayers.services import Author


class Command(WebhookCommand):
    operation = REPEAT_FAILED
    note = ""
    takes_reason = False

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--since", metavar="DATE", type=parse_start, help="only events from this day on"
        )

    def act(self, options: Options, *, by: Author, at: datetime) -> Output:
        count = repeat_failed(endpoint=self.find(options), since=options["since"], at=at)
        return Output({"repeated": count}, f"{count} messages are sent again.")
