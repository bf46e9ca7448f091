"""`change_webhook ID [--url URL] [--event TYPE…] [--description TEXT]`: the rest stays."""

from identity.webhooks.endpoints import CHANGE_WEBHOOK
from identity.webhooks.event_types import EVENT_TYPES
from identity.webhooks.management.webhook_command import WebhookCommand


class Command(WebhookCommand):
    operation = CHANGE_WEBHOOK
    fields = {
        "url": {"metavar": "URL", "help": "https address of the receiver"},
        "event_types": {
            "flag": "--event",
            "nargs": "*",
            "metavar": "TYPE",
            "help": f"send only these: {', '.join(EVENT_TYPES)}; no TYPE means all",
        },
        "description": {"help": "whose it is, for operators"},
    }
    done = "{row} is changed."
