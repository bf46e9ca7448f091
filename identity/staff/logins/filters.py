"""Filters of the list of logins: by period, day and result; each uses an index."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from identity.staff.framework.filters import PeriodFilter
from identity.staff.logins.reasons import ISSUED, staff_text_of
from taxpayers.moments import start_of_day
from tokens.login_events.partitions import first_id
from tokens.refusals.table import REFUSALS


class LoginPeriodFilter(PeriodFilter):
    """The id of a login begins with its time, so a period is a range of ids."""

    def since(self, queryset: "QuerySet[Any]", start: datetime) -> "QuerySet[Any]":
        return queryset.filter(pk__gte=first_id(start))


class DayFilter(admin.SimpleListFilter):
    """One day in the authority's time zone."""

    title = gettext_lazy("day")
    parameter_name = "day"
    template = "staff/logins/day_filter.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return []

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: Any) -> Iterator[Any]:
        others = {k: v for k, v in changelist.get_filters_params().items() if k != "day"}
        if changelist.query:
            others["q"] = [changelist.query]
        yield {"day": self.value() or "", "other_parameters": others}

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        try:
            day = date.fromisoformat(self.value() or "")
            start, end = start_of_day(day), start_of_day(day + timedelta(days=1))
        except (ValueError, OverflowError):
            return queryset
        return queryset.filter(pk__gte=first_id(start), pk__lt=first_id(end))


class ResultFilter(admin.SimpleListFilter):
    title = gettext_lazy("result")
    parameter_name = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("issued", ISSUED),
            ("refused", gettext_lazy("Refused, any reason")),
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
            case reason if reason in REFUSALS:
                return queryset.filter(reason=reason)
            case _:
                return queryset.none()
