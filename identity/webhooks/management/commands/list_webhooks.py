"""`list_webhooks`: every webhook, what waits for it and how it answers."""

from datetime import datetime
from typing import Any

from identity.webhooks.management.webhook_commands import webhook_data
from identity.webhooks.models import WebhookEndpoint
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author


class Command(ServiceCommand):
    help = "List the webhooks: what waits for each, what was given up, and how it answers."

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        rows = WebhookEndpoint.objects.order_by("pk")
        data = [{**webhook_data(row), **_waiting(row, at)} for row in rows]
        return Output({"webhooks": data}, "\n".join(map(_line, data)) or "There is no webhook.")


def _line(data: dict[str, Any]) -> str:
    state = "enabled" if data["is_active"] else "disabled"
    return (
        f"{data['id']}  {state}  {data['url']}: {data['delivered']} delivered,"
        f" {data['waiting']} waiting for up to {data['oldest_waiting_seconds']} seconds,"
        f" {data['failed']} given up; last attempt: {data['last_result'] or 'none'}"
    )


def _waiting(row: WebhookEndpoint, at: datetime) -> dict[str, Any]:
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
