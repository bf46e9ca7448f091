"""`rotate_webhook_secret ID`: a new secret; the present one signs for a day as well."""

from identity.webhooks.endpoints import ROTATE_WEBHOOK_SECRET
from identity.webhooks.management.webhook_command import IssuingCommand


class Command(IssuingCommand):
    operation = ROTATE_WEBHOOK_SECRET
