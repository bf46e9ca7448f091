"""What is due is leased, sent by threads, and marked. Several deliverers may do so at once.

A lease is a moment in the row, not a lock: a deliverer that dies keeps nothing. Its messages are
sent again when their leases have ended, under the same id: each arrives at least once.
"""

import logging
import random
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from identity.management_api import are_for_management
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint
from identity.webhooks.publishing import active_endpoints, publish_changes
from identity.webhooks.secret_storage import secrets_in_force
from identity.webhooks.sending import http_client
from identity.webhooks.sending.attempts import Outcome
from identity.webhooks.sending.marking import mark
from identity.webhooks.signatures import signed_headers
from taxpayers.facts.validity import is_over
from taxpayers.models import SystemUser

LEASE = timedelta(seconds=90)  # longer than an attempt may take
MOST_AT_ONCE = 16
MOST_AT_ONCE_OF_ONE = 4
_HEADERS = {"Content-Type": "application/json", "User-Agent": "token-service-webhooks/1"}

logger = logging.getLogger("identity.webhooks")


@dataclass(frozen=True, slots=True)
class Lease:
    """A delivery that this process sends, and what it sends."""

    delivery: WebhookDelivery
    send: Callable[[], Outcome]


class Deliverer:
    """Sends what is due; `jitter` returns 0 to 1."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._jitter = jitter
        self._under_way: dict[Future[Outcome], WebhookDelivery] = {}
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="webhook")

    def step(self, seconds: float) -> bool:
        """Publish, begin what is due, and mark what ends within so many seconds.

        False: nothing is due, and nothing under way.
        """
        published = publish_changes(timezone.now())
        for lease in lease_due(timezone.now(), MOST_AT_ONCE - len(self._under_way)):
            self._under_way[self._threads.submit(lease.send)] = lease.delivery
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
            delivery, outcome = self._under_way.pop(future), future.result()
            mark(delivery, outcome, timezone.now(), self._jitter)
            logger.info(
                "webhook",
                extra={
                    "webhook_id": delivery.event.message_id,
                    "event_type": delivery.event.type,
                    "endpoint": delivery.endpoint_id,
                    "result": str(outcome),
                },
            )
        return True


def lease_due(at: datetime, most: int) -> list[Lease]:
    """What is due, of each endpoint a few and in the order of each record, leased for us."""
    leases: list[Lease] = []
    for endpoint in active_endpoints():
        if len(leases) < most and may_receive(endpoint, at):
            leases += _lease_of(endpoint, at, most - len(leases))
    return leases


def may_receive(endpoint: WebhookEndpoint, at: datetime) -> bool:
    """Whether it is not paused, and the client that registered it may still read the registry."""
    if endpoint.paused_until is not None and at < endpoint.paused_until:
        return False
    if not endpoint.client_id:
        return True
    owner = SystemUser.objects.filter(client_id=endpoint.client_id).first()
    return (
        owner is not None
        and owner.blocked_at is None
        and not is_over(owner.expires_at, at)
        and are_for_management(owner.scopes)
    )


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
    return list(_leased(list(due), endpoint, at))


def _leased(
    rows: list[WebhookDelivery], endpoint: WebhookEndpoint, at: datetime
) -> Iterator[Lease]:
    for row in rows:
        row.endpoint, row.leased_until = endpoint, at + LEASE
        row.save(update_fields=["leased_until"])
        yield Lease(row, _sender(row, endpoint, at))


def _sender(row: WebhookDelivery, endpoint: WebhookEndpoint, at: datetime) -> Callable[[], Outcome]:
    try:
        secrets = secrets_in_force(endpoint, at)
    except InvalidToken:
        return partial(Outcome, fault="its secret cannot be decrypted: check KEY_ENCRYPTION_KEYS")
    body = row.event.body.encode()
    signed = signed_headers(row.event.message_id, int(at.timestamp()), body, secrets)
    return partial(
        http_client.post,
        endpoint.url,
        {**_HEADERS, **signed},
        body,
        allowed_networks=tuple(settings.WEBHOOK_ALLOWED_NETWORKS),
    )
