"""`disable_webhook ID`: its receiver gets nothing."""

from identity.webhooks.endpoints import DISABLE_WEBHOOK
from identity.webhooks.management.webhook_command import WebhookCommand


class Command(WebhookCommand):
    operation = DISABLE_WEBHOOK
    done = "{row} gets nothing."
