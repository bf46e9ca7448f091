"""Filters of lists by a range of time: from one moment to another, or one month.

Days, months and times without an offset are those of the authority's time zone.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dates import MONTHS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.display import moment_text
from taxpayers.moments import start_of_day, to_utc

MONTHS_BACK = 14
_DAY_LENGTH = len("2026-11-22")


class FromToFilter(admin.ListFilter):
    """`from` is the first moment, `to` the first one that is not included; both are optional.

    Each is a date, which is a whole day, or a date and a time. Any other value is ignored.
    """

    title = gettext_lazy("time range")
    template = "staff/framework/filtering/from_to_filter.html"
    parameter_names = ("from", "to")

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        for name in self.parameter_names:
            if name in params:
                self.used_parameters[name] = params.pop(name)[-1]
        self.start = parsed_moment(str(self.used_parameters.get("from", "")))
        self.end = parsed_moment(str(self.used_parameters.get("to", "")), is_end=True)

    def has_output(self) -> bool:
        return True

    def expected_parameters(self) -> list[str | None]:
        return list(self.parameter_names)

    def choices(self, changelist: Any) -> Iterator[Any]:
        """One choice: the form, with the other parameters of the list."""
        yield {
            "from": _for_input(self.start),
            "to": _for_input(self.end),
            "other_parameters": other_parameters(changelist, self.parameter_names),
        }

    def chip_text(self) -> str:
        """The range in words; empty if there is none."""
        if self.start and self.end:
            text = _("{start} to {end}")
            if self.end <= self.start:
                text = _("{start} to {end}, which is not later")
            return text.format(start=moment_text(self.start), end=moment_text(self.end))
        if self.start:
            return _("from {moment}").format(moment=moment_text(self.start))
        return _("before {moment}").format(moment=moment_text(self.end)) if self.end else ""

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        return self.between(queryset, self.start, self.end)

    def between(
        self, queryset: "QuerySet[Any]", start: datetime | None, end: datetime | None
    ) -> "QuerySet[Any]":
        """The records from `start` to before `end`; None: no limit."""
        raise NotImplementedError


class MonthFilter(admin.SimpleListFilter):
    """One of the latest months, or any other by its name, for example `2026-11`."""

    title = gettext_lazy("month")
    parameter_name = "month"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        first = timezone.localdate().replace(day=1)
        found = []
        for _month in range(MONTHS_BACK):
            found.append((f"{first:%Y-%m}", f"{MONTHS[first.month]} {first.year}"))
            first = (first - timedelta(days=1)).replace(day=1)
        return found

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        if not self.value():
            return queryset
        try:
            first = date.fromisoformat(f"{self.value()}-01")
            start = start_of_day(first)
            end = start_of_day((first + timedelta(days=32)).replace(day=1))
        except (ValueError, OverflowError):  # its chip would name a month that is not there
            return queryset.none()
        return self.between(queryset, start, end)

    def between(self, queryset: "QuerySet[Any]", start: datetime, end: datetime) -> "QuerySet[Any]":
        """The records from `start` to before `end`."""
        raise NotImplementedError


def parsed_moment(text: str, *, is_end: bool = False) -> datetime | None:
    """The moment in the text, in UTC; a date as the first moment of it, or of the next day."""
    try:
        if len(text) == _DAY_LENGTH:
            return start_of_day(date.fromisoformat(text) + timedelta(days=int(is_end)))
        moment = to_utc(datetime.fromisoformat(text))
        timezone.localtime(moment)  # it can be shown, too
    except (ValueError, OverflowError):
        return None
    return moment


def other_parameters(changelist: Any, names: tuple[str, ...]) -> dict[str, list[str]]:
    """What the form of a filter sends besides its own fields, so that the others stay."""
    others = {k: v for k, v in changelist.get_filters_params().items() if k not in names}
    if changelist.query:
        others["q"] = [changelist.query]
    return others


def _for_input(moment: datetime | None) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}" if moment else ""
