"""`register_webhook URL`: events are sent there from now on; shows the secret once."""

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import REGISTER_WEBHOOK
from identity.webhooks.event_types import EVENT_TYPES
from identity.webhooks.management.webhook_command import IssuingCommand


class Command(IssuingCommand):
    operation = REGISTER_WEBHOOK
    fields = ("url", "event_types", "description")

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("url", metavar="URL", help="https address of the receiver")
        parser.add_argument(
            "--event",
            dest="event_types",
            nargs="+",
            default=[],
            metavar="TYPE",
            help=f"send only these: {', '.join(EVENT_TYPES)}; default: all",
        )
        parser.add_argument("--description", default="", help="whose it is, for operators")
