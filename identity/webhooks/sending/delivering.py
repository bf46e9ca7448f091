"""What is due is leased, sent by threads, and marked. Several deliverers may do so at once.

A lease is a moment in the row, not a lock: a deliverer that dies keeps nothing. Its messages are
sent again when their leases have ended, under the same id: each arrives at least once.
"""

import contextlib
import logging
import random
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from identity.webhooks.endpoints import set_webhook_active
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint
from identity.webhooks.owners import is_well, owner_of, was_stopped
from identity.webhooks.publishing import active_endpoints, publish_changes
from identity.webhooks.secret_storage import secrets_in_force, signed_headers
from identity.webhooks.sending import http_client
from identity.webhooks.sending.attempts import Outcome, next_attempt, pause_until
from taxpayers.models import Change
from taxpayers.services.feed.chain import log_sealed
from taxpayers.services.history import Author

LEASE = timedelta(seconds=90)  # longer than an attempt may take
MOST_AT_ONCE = 16
MOST_AT_ONCE_OF_ONE = 4
_BY = Author("deliver_webhooks (manage.py)")
_FAULT_OF_OURS = Outcome(fault="a fault of this service: see its log")
_HEADERS = {"Content-Type": "application/json", "User-Agent": "token-service-webhooks/1"}

logger = logging.getLogger("identity.webhooks")


Lease = tuple[WebhookDelivery, Callable[[], Outcome]]  # what this process sends, and how


class Deliverer:
    """Sends what is due; `jitter` returns 0 to 1."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter
        self._under_way: dict[Future[Outcome], WebhookDelivery] = {}
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="webhook")

    def step(self, seconds: float) -> bool:
        """Publish, begin what is due, mark what ends in so many seconds. False: nothing to do."""
        published: list[Change] = []
        with _one_of_many("changes not published"):
            published = publish_changes(timezone.now())
            log_sealed(published)
        for delivery, send in lease_due(timezone.now(), MOST_AT_ONCE - len(self._under_way)):
            self._under_way[self._threads.submit(send)] = delivery
        return self._mark(seconds) or bool(published)

    def close(self) -> None:
        """Wait for what is under way, and mark it."""
        while self._mark(None):
            pass
        self._threads.shutdown()

    def _mark(self, seconds: float | None) -> bool:
        """Mark what has ended, or ends within this time; False: nothing was under way."""
        if not self._under_way:
            return False
        done, _others = wait(self._under_way, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in done:
            delivery = self._under_way.pop(future)
            named = {
                "webhook_id": delivery.event.message_id,
                "event_type": delivery.event.type,
                "endpoint": delivery.endpoint_id,
            }
            is_marked = False
            with _one_of_many("webhook failed", **named):
                outcome = future.result()
                mark(delivery, outcome, timezone.now(), self._jitter)
                is_marked = True
                logger.info("webhook", extra={**named, "result": str(outcome)})
            if not is_marked:
                mark(delivery, _FAULT_OF_OURS, timezone.now(), self._jitter)
        return True


@contextlib.contextmanager
def _one_of_many(failed: str, **named: Any) -> Iterator[None]:
    """Whatever goes wrong with one of many is noted, and the others go on; not in an outage."""
    try:
        yield
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        logger.exception(failed, extra=named)


def lease_due(at: datetime, most: int) -> list[Lease]:
    """What is due, of each endpoint a few and in the order of each record, leased for us."""
    leases: list[Lease] = []
    for endpoint in active_endpoints():
        with _one_of_many("webhooks not leased", endpoint=endpoint.pk):
            if len(leases) < most and _may_receive(endpoint, at):
                leases += _lease_of(endpoint, at, most - len(leases))
    return leases


def _may_receive(endpoint: WebhookEndpoint, at: datetime) -> bool:
    """Whether it is not paused, and its owner is well. It is disabled if the owner was stopped."""
    if endpoint.client_id:
        owner = owner_of(endpoint)
        if was_stopped(endpoint, owner):
            reason = "The client that registered it was blocked, or its taxpayer deactivated."
            set_webhook_active(endpoint=endpoint, is_active=False, reason=reason, by=_BY, at=at)
            return False
        if not is_well(owner, at):
            return False
    return endpoint.paused_until is None or at >= endpoint.paused_until


@transaction.atomic
def _lease_of(endpoint: WebhookEndpoint, at: datetime, most: int) -> list[Lease]:
    pending = endpoint.deliveries.filter(state=WebhookDelivery.PENDING)
    most_of_one = 1 if endpoint.failures else MOST_AT_ONCE_OF_ONE  # one, to see how it answers
    free = most_of_one - pending.filter(leased_until__gt=at).count()
    if free <= 0:
        return []
    before = WebhookDelivery.objects.filter(
        endpoint=endpoint,
        record=OuterRef("record"),
        state=WebhookDelivery.PENDING,
        pk__lt=OuterRef("pk"),
    )
    due = (
        pending.filter(Q(leased_until=None) | Q(leased_until__lte=at), ~Exists(before))
        .filter(due_at__lte=at)
        .select_for_update(skip_locked=True, of=("self",))
        .select_related("event")
        .order_by("due_at", "pk")[: min(free, most)]
    )
    leases: list[Lease] = []
    for row in due:
        row.endpoint, row.leased_until = endpoint, at + LEASE
        row.save(update_fields=["leased_until"])
        leases.append((row, partial(_send, row, endpoint, at)))
    return leases


def _send(row: WebhookDelivery, endpoint: WebhookEndpoint, at: datetime) -> Outcome:
    """In a thread, without the database."""
    try:
        secrets = secrets_in_force(endpoint, at)
    except InvalidToken:
        return Outcome(fault="its secret cannot be decrypted: check KEY_ENCRYPTION_KEYS")
    body = row.event.body.encode()
    signed = signed_headers(row.event.message_id, int(at.timestamp()), body, secrets)
    return http_client.post(
        endpoint.url,
        {**_HEADERS, **signed},
        body,
        allowed_networks=tuple(settings.WEBHOOK_ALLOWED_NETWORKS),
    )


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
        set_webhook_active(endpoint=endpoint, is_active=False, reason=reason, by=_BY, at=at)
    return True
