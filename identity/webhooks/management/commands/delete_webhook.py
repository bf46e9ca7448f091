"""`delete_webhook ID`: its receiver gets nothing more, and what waits for it is dropped."""

from identity.webhooks.endpoints import DELETE_WEBHOOK
from identity.webhooks.management.webhook_command import WebhookCommand


class Command(WebhookCommand):
    operation = DELETE_WEBHOOK
    done = "{row} is deleted."
