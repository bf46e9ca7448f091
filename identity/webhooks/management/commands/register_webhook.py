"""`register_webhook URL`: events are sent there from now on; shows the secret once."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import REGISTER_WEBHOOK, register_webhook
from identity.webhooks.event_types import EVENT_TYPES
from identity.webhooks.management.webhook_command import issued_data, issued_text
from taxpayers.management.command import Output, ServiceCommand, add_reason
from taxpayers.services import Author


class Command(ServiceCommand):
    operation = REGISTER_WEBHOOK

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", metavar="URL", help="https address of the receiver")
        parser.add_argument(
            "--event",
            nargs="+",
            default=[],
            metavar="TYPE",
            help=f"send these alone: {', '.join(EVENT_TYPES)}; default: all",
        )
        parser.add_argument("--description", default="", help="whose it is, for operators")
        add_reason(parser)

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        issued = register_webhook(
            url=options["url"],
            event_types=options["event"],
            description=options["description"],
            reason=options["reason"],
            by=by,
            at=at,
        )
        return Output(issued_data(issued), issued_text(issued))
