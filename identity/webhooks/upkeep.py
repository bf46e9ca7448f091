"""What webhooks need every night: old deliveries are deleted, secrets get the newest key."""

from datetime import datetime, timedelta
from typing import Any

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from identity.webhooks.models import WebhookDelivery, WebhookEndpoint, WebhookEvent
from identity.webhooks.secret_storage import encrypt_anew

_BATCH = 1_000


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
    """Encrypt the secrets with the newest of KEY_ENCRYPTION_KEYS, so that old ones can go.

    Returns the endpoints of which a secret cannot be decrypted.
    """
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
