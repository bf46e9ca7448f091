"""Changes become events: the history is the outbox, so no service knows of webhooks.

A change and its line in the history are committed together or not at all. What is committed gets
its place in the feed here, and in the same transaction a delivery for each endpoint.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from identity.webhooks.event_types import ENDS_SOON, TEST, event_type_of
from identity.webhooks.models import LONGEST_RECORD, WebhookDelivery, WebhookEndpoint, WebhookEvent
from identity.webhooks.subjects import Subject, subjects_of
from taxpayers.models import Change
from taxpayers.moments import exact_text
from taxpayers.services.feed.chain import is_numbered, number_changes


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event; `more` is what its type has beside the record."""

    type: str
    occurred_at: datetime
    subject: Subject
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> str:
        content = {
            "type": self.type,
            "timestamp": exact_text(self.occurred_at),
            "data": {**self.subject.as_json(), **self.more},
        }
        return json.dumps(content, separators=(",", ":"))

    @property
    def record(self) -> str:
        """What is sent in order. Records whose long identifiers begin alike are one here."""
        return f"{self.subject.kind} {self.subject.id}"[:LONGEST_RECORD]


def sample_of(event_type: str, at: datetime) -> str:
    """The JSON of such an event of a record that does not exist."""
    if event_type == TEST:
        return json.dumps({"type": TEST, "timestamp": exact_text(at), "data": {}})
    of = event_type.partition(".")[0]
    kind = "system_user" if of == "credential" else of
    more: dict[str, Any] = {"reference": None, "sample": True}
    if event_type in ENDS_SOON.values():
        more = {"days": 7, "ends_at": exact_text(at + timedelta(days=7)), "sample": True}
        more |= {"credential": 0} if of == "credential" else {}
    return NewEvent(event_type, at, Subject(kind, "sample"), more).body


def publish_changes(at: datetime) -> list[Change]:
    """Give the next changes their place, and each endpoint what it wants of them.

    Returns them; none: nothing is left. A process of the service logs them (`log_sealed`); a
    command does not, whose output is for its operator.
    """
    if is_numbered():
        return []
    with transaction.atomic():
        changes = number_changes()
        endpoints = active_endpoints()
        if endpoints:
            store_events(_events_of(changes), endpoints, at)
    return changes


def publish_all_changes(at: datetime) -> None:
    """Until no change that was committed by now is without its place."""
    while publish_changes(at):
        pass


def active_endpoints() -> list[WebhookEndpoint]:
    """Those that get events."""
    return list(WebhookEndpoint.objects.filter(is_active=True).order_by("pk"))


def store_events(
    events: Iterable[NewEvent], endpoints: Sequence[WebhookEndpoint], at: datetime
) -> list[WebhookDelivery]:
    """Store each event that an endpoint wants, with its deliveries. Only inside a transaction."""
    rows: list[WebhookEvent] = []
    deliveries: list[WebhookDelivery] = []
    for event in events:
        wanting = [endpoint for endpoint in endpoints if endpoint.wants(event.type)]
        if not wanting:
            continue
        row = WebhookEvent(type=event.type, body=event.body, created_at=at)
        rows.append(row)
        deliveries += [
            WebhookDelivery(
                event=row, endpoint=endpoint, record=event.record, created_at=at, due_at=at
            )
            for endpoint in wanting
        ]
    WebhookEvent.objects.bulk_create(rows)
    return WebhookDelivery.objects.bulk_create(deliveries)


def _events_of(changes: Sequence[Change]) -> Iterable[NewEvent]:
    types = {change.pk: event_type_of(change.object_type, change.action) for change in changes}
    wanted = [change for change in changes if types[change.pk]]
    subjects = subjects_of(wanted)
    for change in wanted:
        if subject := subjects.get(change.pk):
            reference = None if change.task_id is None else str(change.task_id)
            more = {"reference": reference}
            if evidence := change.after.get("evidence"):
                more["evidence"] = evidence
            yield NewEvent(types[change.pk], change.at, subject, more)
