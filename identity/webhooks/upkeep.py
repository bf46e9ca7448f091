"""What webhooks need every night: ends are announced, old deliveries go, secrets get a new key."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from identity.webhooks.event_types import ENDS_SOON
from identity.webhooks.models import EndReminder, WebhookDelivery, WebhookEndpoint, WebhookEvent
from identity.webhooks.publishing import NewEvent, active_endpoints, store_events
from identity.webhooks.secret_storage import encrypt_anew
from identity.webhooks.subjects import subject_of
from taxpayers.keyset import batches_of
from taxpayers.models import Credential, GrantedPermission, Intermediary, SystemUser
from taxpayers.moments import exact_text


def give_up_old(at: datetime) -> int:
    """Give up what has waited for WEBHOOK_RETENTION_DAYS, for a receiver that is away."""
    count = 0
    for endpoint in WebhookEndpoint.objects.order_by("pk"):
        with transaction.atomic():
            row = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
            old = row.deliveries.filter(
                state=WebhookDelivery.PENDING, created_at__lt=_oldest(at), leased_until=None
            )
            given_up = old.update(state=WebhookDelivery.FAILED, finished_at=at)
            row.given_up += given_up
            row.save(update_fields=["given_up"])
        count += given_up
    return count


def delete_old(at: datetime) -> int:
    """Delete deliveries that ended WEBHOOK_RETENTION_DAYS ago, and events that nothing needs."""
    count = _delete_in_batches(WebhookDelivery.objects.filter(finished_at__lt=_oldest(at)))
    _delete_in_batches(
        WebhookEvent.objects.filter(created_at__lt=_oldest(at), deliveries__isnull=True)
    )
    return count


def renew_encryption() -> list[WebhookEndpoint]:
    """Encrypt with the newest key. Returns the endpoints whose secret cannot be decrypted."""
    lost = []
    for endpoint in WebhookEndpoint.objects.order_by("pk"):
        with transaction.atomic():
            row = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
            try:
                row.secret = encrypt_anew(row.secret)
                row.former_secret = encrypt_anew(row.former_secret)
            except InvalidToken:
                lost.append(row)
            else:
                row.save(update_fields=["secret", "former_secret"])
    return lost


def _oldest(at: datetime) -> datetime:
    return at - timedelta(days=settings.WEBHOOK_RETENTION_DAYS)


def _delete_in_batches(rows: "QuerySet[Any]") -> int:
    """In short transactions, because others wait for a long one."""
    count = 0
    while keys := list(rows.values_list("pk", flat=True)[:_BATCH]):
        count += rows.model._default_manager.filter(pk__in=keys).delete()[0]
    return count


DAYS = (1, 7, 30)  # before an end that it is announced
_BATCH = 500
# Of each kind the field of the last moment, by which an index finds the rows; and these.
_KINDS: Mapping[str, tuple[str, Callable[[], "QuerySet[Any]"]]] = {
    "credential": (
        "expires_at",
        lambda: Credential.objects.filter(slot__isnull=False).select_related("system_user"),
    ),
    "system_user": ("expires_at", SystemUser.objects.all),
    "permission": ("valid_until", lambda: GrantedPermission.objects.filter(revoked_at=None)),
    "intermediary": (
        "active_until",
        lambda: Intermediary.objects.filter(is_active=True).select_related("taxpayer"),
    ),
}


def announce_ends(at: datetime) -> int:
    """Store the events of what ends soon and was not announced; how many. Safe to repeat."""
    if not active_endpoints():
        return 0  # no receiver; one that registers later gets the next stage
    EndReminder.objects.filter(ends_at__lt=at).delete()
    last, count = at + timedelta(days=max(DAYS)), 0
    for name, (end, all_rows) in _KINDS.items():
        rows = all_rows().filter(**{f"{end}__gt": at, f"{end}__lte": last})
        for batch in batches_of(rows.order_by(end, "pk"), _BATCH):  # in the order of their ends
            count += _announce(name, [(row, getattr(row, end)) for row in batch], at)
    return count


@transaction.atomic
def _announce(name: str, ends: Sequence[tuple[Any, datetime]], at: datetime) -> int:
    """Of one batch; what was announced is stored with the events, or neither is."""
    known = EndReminder.objects.filter(kind=name, record_id__in=[row.pk for row, _end in ends])
    announced = set(known.values_list("record_id", "ends_at", "days"))
    new = [
        (row, EndReminder(kind=name, record_id=row.pk, ends_at=end, days=_stage(end, at)))
        for row, end in ends
        if (row.pk, end, _stage(end, at)) not in announced
    ]
    EndReminder.objects.bulk_create(reminder for _row, reminder in new)
    store_events((_event(row, reminder, at) for row, reminder in new), active_endpoints(), at)
    return len(new)


def _stage(end: datetime, at: datetime) -> int:
    """The shortest of the times before an end that has begun."""
    return next(days for days in DAYS if end <= at + timedelta(days=days))


def _event(row: Any, reminder: EndReminder, at: datetime) -> NewEvent:
    more = {"ends_at": exact_text(reminder.ends_at), "days": reminder.days}
    if isinstance(row, Credential):
        more["credential"] = row.pk
        row = row.system_user
    return NewEvent(ENDS_SOON[reminder.kind], at, subject_of(row), more)
