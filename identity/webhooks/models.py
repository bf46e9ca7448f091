"""Endpoints, their deliveries, and what was announced before."""

import re
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from taxpayers.models import VIEW_ONLY, NoPage

LONGEST_RECORD = 80


class WebhookEndpoint(models.Model):
    """An address of a program of the authority, to which events are sent."""

    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=255, blank=True)
    event_types = models.JSONField(default=list)  # none: all
    is_active = models.BooleanField(default=True)
    # The system user that registered it, without which it gets nothing; empty: an operator.
    client_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()
    secret = models.TextField(editable=False)  # encrypted
    former_secret = models.TextField(blank=True, editable=False)  # encrypted; signs as well
    former_secret_until = models.DateTimeField(null=True, editable=False)
    # How it answers.
    paused_until = models.DateTimeField(null=True, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False)  # one after the other
    delivered = models.BigIntegerField(default=0, editable=False)
    failed_attempts = models.BigIntegerField(default=0, editable=False)
    given_up = models.BigIntegerField(default=0, editable=False)
    last_delivered_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        db_table = "webhook_endpoints"
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        default_permissions: ClassVar = VIEW_ONLY

    def __str__(self) -> str:
        return f"webhook {self.pk} {self.address}"

    @property
    def address(self) -> str:
        """What others than its owner see of the URL: path and query may be a secret."""
        scheme, _, rest = self.url.partition("://")
        place, *more = re.split("[/?#]", rest, maxsplit=1)
        return f"{scheme}://{place.rpartition('@')[2]}{'/…' if any(more) else ''}"

    def wants(self, event_type: str) -> bool:
        return not self.event_types or event_type in self.event_types


class WebhookEvent(NoPage):
    """What is sent, the same bytes in each attempt and to each endpoint."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    type = models.CharField(max_length=64)
    body = models.TextField()
    created_at = models.DateTimeField(db_index=True)

    class Meta(NoPage.Meta):
        db_table = "webhook_events"

    @property
    def message_id(self) -> str:
        """What receivers know it by, so that they do nothing twice."""
        return str(self.id)


class WebhookDelivery(NoPage):
    """One event for one endpoint."""

    PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"

    event = models.ForeignKey(WebhookEvent, models.CASCADE, related_name="deliveries")
    endpoint = models.ForeignKey(WebhookEndpoint, models.CASCADE, related_name="deliveries")
    record = models.CharField(max_length=LONGEST_RECORD)  # its events are sent in their order
    state = models.CharField(max_length=16, default=PENDING)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True)  # a deliverer is sending it
    attempts = models.PositiveSmallIntegerField(default=0)
    last_attempt_at = models.DateTimeField(null=True)
    last_result = models.CharField(max_length=96, blank=True)
    finished_at = models.DateTimeField(null=True)

    class Meta(NoPage.Meta):
        db_table = "webhook_deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["event", "endpoint"], name="webhook_delivery_once")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["endpoint", "due_at", "id"],
                name="webhook_delivery_due",
                condition=Q(state="pending"),
            ),
            models.Index(
                fields=["endpoint", "record", "id"],
                name="webhook_delivery_in_order",
                condition=Q(state="pending"),
            ),
            models.Index(fields=["endpoint", "state", "-id"], name="webhook_delivery_by_state"),
            models.Index(
                fields=["finished_at"],
                name="webhook_delivery_by_end",
                condition=Q(finished_at__isnull=False),
            ),
        ]


class EndReminder(NoPage):
    """That the coming end of a record was announced so many days before."""

    kind = models.CharField(max_length=16)
    record_id = models.BigIntegerField()
    ends_at = models.DateTimeField()
    days = models.PositiveSmallIntegerField()

    class Meta(NoPage.Meta):
        db_table = "webhook_end_reminders"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["kind", "record_id", "ends_at", "days"], name="webhook_end_reminder_once"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["ends_at"], name="webhook_end_reminder_by_end")]
