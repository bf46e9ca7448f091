"""What an attempt has come to, stored: delivered, to be tried again, or given up."""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from identity.webhooks.endpoints import set_webhook_active
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint
from identity.webhooks.sending.attempts import Outcome, next_attempt, pause_until
from taxpayers.services.history import Author

BY = Author("deliver_webhooks (manage.py)")


@transaction.atomic
def mark(
    delivery: WebhookDelivery, outcome: Outcome, at: datetime, jitter: Callable[[], float]
) -> bool:
    """Store the outcome of an attempt; False if its lease has ended: another may have sent it."""
    endpoint = WebhookEndpoint.objects.select_for_update().get(pk=delivery.endpoint_id)
    row = (
        WebhookDelivery.objects.select_for_update(of=("self",))
        .filter(pk=delivery.pk, leased_until=delivery.leased_until)
        .first()
    )
    if row is None:
        return False
    row.attempts += 1
    row.leased_until, row.last_attempt_at, row.last_result = None, at, str(outcome)
    if outcome.is_success:
        row.state, row.finished_at = WebhookDelivery.DELIVERED, at
        endpoint.delivered += 1
        endpoint.last_delivered_at, endpoint.failures, endpoint.paused_until = at, 0, None
    else:
        endpoint.failed_attempts += 1
        if outcome.is_about_the_receiver:
            endpoint.failures += 1
            endpoint.paused_until = pause_until(endpoint.failures, outcome, at)
        due = None if outcome.is_gone else next_attempt(row.attempts, outcome, at, jitter)
        if due is None:
            row.state, row.finished_at = WebhookDelivery.FAILED, at
            endpoint.given_up += 1
        else:
            row.due_at = due
    row.save()
    endpoint.save()
    if outcome.is_gone:
        reason = "The receiver answered 410 Gone: it wants no more messages."
        set_webhook_active(endpoint=endpoint, is_active=False, reason=reason, by=BY, at=at)
    return True
