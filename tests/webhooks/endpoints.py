"""Endpoints and deliveries for tests."""

import json
from typing import Any

from identity.webhooks.endpoints import register_webhook
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from identity.webhooks.sending.delivering import Deliverer
from taxpayers.services import Author, AuthorKind
from tests.support.moments import now

BY = Author("tester", "192.0.2.7", kind=AuthorKind.OPERATOR)


def new_endpoint(url: str = "https://portal.example.org/hooks", **fields: Any) -> WebhookEndpoint:
    given: dict[str, Any] = {"by": BY, "at": now(), **fields}
    return register_webhook(url=url, **given).endpoint


def deliver_all() -> None:
    deliverer = Deliverer(jitter=lambda: 0.0)
    try:
        while deliverer.step(5):
            pass
    finally:
        deliverer.close()


def make_due(**filters: Any) -> None:
    rows = WebhookDelivery.objects.filter(state=WebhookDelivery.PENDING, **filters)
    rows.update(due_at=now())
    WebhookEndpoint.objects.update(paused_until=None)


def bodies() -> list[dict[str, Any]]:
    return [json.loads(event.body) for event in WebhookEvent.objects.order_by("created_at", "id")]


def states(**filters: Any) -> list[tuple[str, int, str]]:
    rows = WebhookDelivery.objects.filter(**filters).order_by("pk")
    return [(row.state, row.attempts, row.last_result) for row in rows]
