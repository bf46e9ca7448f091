"""How logins are narrowed down: by time and by outcome, each a range or the head of an index."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from identity.staff.framework.days import first_moment
from identity.staff.logins.reasons import ISSUED, staff_text_of
from tokens.login_events.partitions import first_id
from tokens.refusals.table import REFUSALS


class PeriodFilter(admin.SimpleListFilter):
    """The key of a login begins with its moment, so the period is a range of the key."""

    title = gettext_lazy("period")
    parameter_name = "period"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("1h", gettext_lazy("Last hour")),
            ("1", gettext_lazy("Last 24 hours")),
            ("7", gettext_lazy("Last 7 days")),
            ("30", gettext_lazy("Last 30 days")),
        ]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        period = _PERIODS.get(self.value() or "")
        if period is None:
            return queryset
        return queryset.filter(pk__gte=first_id(timezone.now() - period))


_PERIODS = {
    "1h": timedelta(hours=1),
    "1": timedelta(days=1),
    "7": timedelta(days=7),
    "30": timedelta(days=30),
}


class DayFilter(admin.SimpleListFilter):
    """One day in the authority's time zone, chosen in a calendar."""

    title = gettext_lazy("day")
    parameter_name = "day"
    template = "staff/logins/day_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return []

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        kept = {k: v for k, v in changelist.get_filters_params().items() if k != "day"}
        if changelist.query:
            kept["q"] = [changelist.query]
        yield {"day": self.value() or "", "kept": kept}

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        try:
            day = date.fromisoformat(self.value() or "")
            begin, end = first_moment(day), first_moment(day + timedelta(days=1))
        except (ValueError, OverflowError):
            return queryset
        return queryset.filter(pk__gte=first_id(begin), pk__lt=first_id(end))


class OutcomeFilter(admin.SimpleListFilter):
    title = gettext_lazy("outcome")
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("issued", ISSUED),
            ("refused", gettext_lazy("Refused, whatever the reason")),
            *((str(reason), staff_text_of(reason).what) for reason in REFUSALS),
        ]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        match self.value():
            case None:
                return queryset
            case "issued":
                return queryset.filter(reason="")
            case "refused":
                return queryset.exclude(reason="")
            case reason:
                return queryset.filter(reason=reason)
