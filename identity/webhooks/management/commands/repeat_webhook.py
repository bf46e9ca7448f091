"""`repeat_webhook ID [--since DATE]`: what was given up is sent again."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import REPEAT_FAILED, repeat_failed
from identity.webhooks.management.webhook_command import add_webhook, find_webhook
from taxpayers.management.arguments import parse_start
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author


class Command(ServiceCommand):
    operation = REPEAT_FAILED

    def add_arguments(self, parser: CommandParser) -> None:
        add_webhook(parser)
        parser.add_argument(
            "--since", metavar="DATE", type=parse_start, help="only events from this day on"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        webhook = find_webhook(options["webhook"])
        count = repeat_failed(endpoint=webhook, since=options["since"], at=at)
        return Output({"repeated": count}, f"{count} messages are sent again.")
