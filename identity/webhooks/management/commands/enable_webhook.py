"""`enable_webhook ID`: its receiver gets what changes from now on."""

from identity.webhooks.endpoints import ENABLE_WEBHOOK
from identity.webhooks.management.webhook_command import WebhookCommand


class Command(WebhookCommand):
    operation = ENABLE_WEBHOOK
    done = "{row} gets what changes from now on."
