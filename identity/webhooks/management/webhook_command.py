"""What the commands about one webhook have in common."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from identity.webhooks.endpoints import IssuedWebhookSecret
from identity.webhooks.models import WebhookEndpoint
from taxpayers.management.command import Output
from taxpayers.management.operation_command import OperationCommand, Options
from taxpayers.validation import ServiceError


def webhook_data(row: WebhookEndpoint) -> dict[str, Any]:
    """For machines; never a secret."""
    return {
        "id": row.pk,
        "url": row.url,
        "description": row.description,
        "event_types": row.event_types,
        "is_active": row.is_active,
        "client_id": row.client_id,
    }


class WebhookCommand(OperationCommand):
    """`ID`."""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("webhook", metavar="ID", type=int, help="as list_webhooks shows it")

    def find(self, options: Options) -> WebhookEndpoint:
        """Raises ServiceError if there is none."""
        number = options["webhook"]
        row = WebhookEndpoint.objects.filter(pk=number).first()
        if row is None:
            raise ServiceError(
                f"There is no webhook {number}. See them all: manage.py list_webhooks"
            )
        return row

    def data(self, row: WebhookEndpoint) -> dict[str, Any]:
        return webhook_data(row)


class IssuingCommand(WebhookCommand):
    """Shows a new secret in clear, once."""

    note = ""

    def answer(self, done: IssuedWebhookSecret, options: Options) -> Output:
        text = (
            f"webhook  {done.endpoint.pk}\n"
            f"url      {done.endpoint.url}\n"
            f"secret   {done.secret}\n"
            "\nGive the secret to the receiver. It is not shown again."
        )
        return Output({**webhook_data(done.endpoint), "secret": done.secret}, text)


def waiting_data(row: WebhookEndpoint, at: datetime) -> dict[str, Any]:
    """What waits for it and how it answers."""
    states = {state: row.deliveries.filter(state=state) for state in ("pending", "failed")}
    oldest = states["pending"].order_by("created_at").first()
    latest = row.deliveries.exclude(last_attempt_at=None).order_by("-last_attempt_at").first()
    return {
        "waiting": states["pending"].count(),
        "oldest_waiting_seconds": int((at - oldest.created_at).total_seconds()) if oldest else 0,
        "failed": states["failed"].count(),
        "delivered": row.delivered,
        "last_delivered_at": row.last_delivered_at,
        "last_result": latest.last_result if latest else "",
        "paused_until": row.paused_until,
    }
