"""Webhooks: where events are sent, how they answer, and the latest deliveries. Only to read."""

from collections.abc import Iterable
from datetime import datetime

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.display import moment
from identity.staff.framework.badges import ACTIVE, NOT_ACTIVE, Badge
from identity.staff.framework.lists import Context, column
from identity.staff.framework.records import RecordAdmin
from identity.webhooks.models import WebhookDelivery, WebhookEndpoint

MAX_DELIVERIES = 25
_STATES = {
    WebhookDelivery.PENDING: Badge(gettext_lazy("Waits"), "warning"),
    WebhookDelivery.DELIVERED: Badge(gettext_lazy("Delivered"), "good"),
    WebhookDelivery.FAILED: Badge(gettext_lazy("Given up"), "bad"),
}


def badge_of_webhook(row: WebhookEndpoint, at: datetime) -> Badge:
    """Whether events are sent to it now."""
    if not row.is_active:
        return Badge(NOT_ACTIVE, "bad", _("Nothing is sent to it."))
    if row.paused_until is not None and row.paused_until > at:
        text = _("It does not answer: the next attempt is {moment}.")
        sentence = format_html(text, moment=moment(row.paused_until))
        return Badge(_("Paused"), "warning", sentence)
    return Badge(ACTIVE, "good")


class WebhookAdmin(RecordAdmin):
    list_display = (
        column("address", gettext_lazy("address"), lambda row: row.address),
        column("client", gettext_lazy("client ID"), lambda row: row.client_id or "—"),
        "state",
        column(
            "delivered_at",
            gettext_lazy("last delivered"),
            lambda row: moment(row.last_delivered_at),
        ),
        column("given_up", gettext_lazy("given up"), lambda row: row.given_up),
    )
    list_filter = (("is_active", admin.BooleanFieldListFilter),)
    search_help_text = gettext_lazy("Client ID, or address")
    record_template = "staff/webhooks/webhook.html"
    badge = staticmethod(badge_of_webhook)
    empty_text = gettext_lazy(
        "Programs add webhooks by the management API, operators by manage.py register_webhook."
    )

    def record_title(self, record: WebhookEndpoint) -> str:
        return record.address

    def search_conditions(self, term: str) -> Iterable[Q]:
        # No index: an authority has few. Path and query may be a secret, so they are not searched.
        hosts = [row.pk for row in WebhookEndpoint.objects.all()[:1000] if term in row.address]
        return [Q(client_id=term), Q(pk__in=hosts)]

    def record_context(
        self, request: HttpRequest, record: WebhookEndpoint, at: datetime
    ) -> Context:
        latest = record.deliveries.select_related("event").order_by("-pk")[:MAX_DELIVERIES]
        return {"deliveries": [(row, _STATES[row.state]) for row in latest]}
