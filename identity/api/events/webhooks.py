"""`/webhooks`: where events are sent, and what has come of each."""

import json
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from identity.api.framework import fields, kinds
from identity.api.framework.query import Filters
from identity.webhooks import endpoints
from identity.webhooks.destination import LONGEST_URL
from identity.webhooks.event_types import EVENT_TYPES
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint
from taxpayers.duties import Duty

_NOTE = "Store the secret now: it is not shown again."
_LATER = {
    "secret": None,
    "note": "The secret was shown in the first answer to this request. If that answer was lost,"
    " issue another one: POST .../rotate-secret with a new Idempotency-Key.",
}
_STATES = (WebhookDelivery.PENDING, WebhookDelivery.DELIVERED, WebhookDelivery.FAILED)
_TYPES = f"Some of {', '.join(EVENT_TYPES)}; none: all."


class WebhookRecord(serializers.Serializer[WebhookEndpoint]):
    """An endpoint; never its secret."""

    id = serializers.IntegerField()
    url = serializers.SerializerMethodField(
        help_text="For a token that only reads without path and query, which may be a secret."
    )
    description = serializers.CharField()
    event_types = serializers.ListField(child=serializers.CharField(), help_text=_TYPES)
    is_active = serializers.BooleanField()
    client_id = serializers.CharField(help_text="Its owner: the client that registered it.")
    registered_at = fields.Moment(source="created_at")
    former_secret_until = fields.Moment(
        allow_null=True, help_text="Until when the secret before signs as well."
    )

    def get_url(self, row: WebhookEndpoint) -> str:
        return row.url if self.context["may_change"] else row.address


class IssuedWebhookRecord(serializers.Serializer[Any]):
    """A new secret. The repeated answer to the same request does not have it."""

    secret = serializers.CharField(allow_null=True, help_text="whsec_ and base64.")
    note = serializers.CharField()


class WebhookWithSecretRecord(WebhookRecord):
    """An endpoint with its new secret, which no other answer has."""

    issued = IssuedWebhookRecord(required=False)


class DeliveryRecord(serializers.Serializer[WebhookDelivery]):
    """One event for this endpoint, and what has come of it."""

    id = serializers.IntegerField()
    webhook_id = serializers.CharField(source="event.message_id")
    path = serializers.SerializerMethodField()
    event_type = serializers.CharField(source="event.type")
    state = serializers.CharField(help_text="pending, delivered or failed.")
    created_at = fields.Moment()
    attempts = serializers.IntegerField()
    last_attempt_at = fields.Moment(allow_null=True)
    last_result = serializers.CharField(help_text="The status of the answer, or why there is none.")
    next_attempt_at = serializers.SerializerMethodField()

    def get_path(self, row: WebhookDelivery) -> str:
        """Of its record in this API; empty for webhook.test."""
        path: str = json.loads(row.event.body)["data"].get("path", "")
        return path

    @extend_schema_field(fields.Moment(allow_null=True))
    def get_next_attempt_at(self, row: WebhookDelivery) -> str | None:
        """null: there is none."""
        is_pending = row.state == WebhookDelivery.PENDING
        return fields.Moment().to_representation(row.due_at) if is_pending else None


class NewWebhookBody(fields.Body):
    """What is needed to register an endpoint."""

    url = fields.Text(max_length=LONGEST_URL, help_text="An https address.")
    event_types = fields.Texts(required=False, help_text=_TYPES)
    description = fields.Text(required=False, allow_blank=True)
    reason = fields.Reason(required=False)


class ChangeWebhookBody(fields.ReasonBody):
    """What can be changed of an endpoint; what is left out stays as it is."""

    url = fields.Text(required=False, max_length=LONGEST_URL)
    event_types = fields.Texts(required=False, help_text=_TYPES)
    description = fields.Text(required=False, allow_blank=True)


class NoBody(fields.Body):
    """An empty object."""


class TestBody(fields.Body):
    """Which samples are sent; none: webhook.test."""

    event_types = fields.Texts(required=False, help_text=f"Some of {', '.join(EVENT_TYPES)}.")


class RepeatBody(fields.Body):
    """Which of the failed deliveries are tried again; left out: all."""

    since = fields.Start(required=False, help_text="Events from this day or moment on.")


class DeliveryFilters(Filters):
    state = fields.Choice(_STATES, required=False)


def _once(issued: endpoints.IssuedWebhookSecret) -> kinds.Once:
    shown = {"secret": issued.secret, "note": _NOTE}
    return kinds.Once(issued.endpoint, shown, _LATER)


_SHOWN_ONCE: Any = {"once": _once, "answer": WebhookWithSecretRecord}  # of a task


KIND = kinds.RecordKind(
    name="webhooks",
    singular="webhook",
    parameter="webhook",
    names="The id of the webhook.",
    record=WebhookRecord,
    duty=Duty.WEBHOOKS,
    owner="client_id",
    summary="List webhooks",
    order=("pk",),
    rows=WebhookEndpoint.objects.all,
    create=kinds.ApiTask(
        "",
        endpoints.REGISTER_WEBHOOK,
        NewWebhookBody,
        note="It gets events as long as this client may use the management API, and only this"
        " client sees it here.",
        **_SHOWN_ONCE,
    ),
    change=kinds.ApiTask("", endpoints.CHANGE_WEBHOOK, ChangeWebhookBody),
    tasks=(
        kinds.ApiTask(
            "rotate-secret", endpoints.ROTATE_WEBHOOK_SECRET, fields.ReasonBody, **_SHOWN_ONCE
        ),
        *kinds.tasks_by_reason(vars(endpoints)),
        kinds.ApiTask("delete", endpoints.DELETE_WEBHOOK, fields.ReasonBody),
        kinds.ApiTask("test", endpoints.SEND_TEST, TestBody),
        kinds.ApiTask("repeat-failed", endpoints.REPEAT_FAILED, RepeatBody),
        kinds.ApiTask(
            "resend",
            endpoints.RESEND,
            NoBody,
            **kinds.part_of("deliveries", "delivery", "delivery"),
        ),
    ),
    parts={
        "deliveries": kinds.Listing(
            "deliveries",
            "List the deliveries of the webhook, the newest first",
            DeliveryRecord,
            ("-pk",),
            lambda owner: owner.deliveries.select_related("event"),
            DeliveryFilters,
        )
    },
)
