"""Filters of lists by time: a recent period, or an expiry within some days."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy

EXPIRY_DAYS = (7, 30, 90)
_PERIODS = {
    "1h": (gettext_lazy("Last hour"), timedelta(hours=1)),
    "1": (gettext_lazy("Last 24 hours"), timedelta(days=1)),
    "7": (gettext_lazy("Last 7 days"), timedelta(days=7)),
    "30": (gettext_lazy("Last 30 days"), timedelta(days=30)),
}


class PeriodFilter(admin.SimpleListFilter):
    """A period that ends now; a subclass says which records it contains."""

    title = gettext_lazy("period")
    parameter_name = "period"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, title) for name, (title, _length) in _PERIODS.items()]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        if not self.value():
            return queryset
        period = _PERIODS.get(self.value() or "")
        if period is None:  # its chip would name a filter that the list does not have
            return queryset.none()
        return self.since(queryset, timezone.now() - period[1])

    def since(self, queryset: "QuerySet[Any]", start: datetime) -> "QuerySet[Any]":
        """The records since this moment."""
        raise NotImplementedError


def expiry_choices() -> list[tuple[str, Any]]:
    """The choices "expires within … days", for `lookups` of a filter."""
    text = gettext_lazy("Expires within {days} days")
    return [(str(days), format_lazy(text, days=days)) for days in EXPIRY_DAYS]


def filtered(queryset: "QuerySet[Any]", choice: str | None, wanted: Q | None) -> "QuerySet[Any]":
    """The rows of this choice: all without one, none if the filter has no such choice.

    Its chip names the choice, so all rows would be a lie: in the list, and in its export.
    """
    if not choice:
        return queryset
    return queryset.none() if wanted is None else queryset.filter(wanted)


def expires_within(field: str, choice: str | None, at: datetime) -> Q | None:
    """The condition of one of `expiry_choices` on this field; None for any other choice."""
    if choice not in {str(days) for days in EXPIRY_DAYS}:
        return None
    end = at + timedelta(days=int(choice))
    return Q(**{f"{field}__gte": at, f"{field}__lt": end})
