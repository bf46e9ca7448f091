"""The filter of logins by time: a period that ends now, or from one moment to another.

Days and times without an offset are those of the authority's time zone. The id of a login begins
with its time, so a range of time is a range of ids.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.display import moment_text
from taxpayers.moments import start_of_day, to_utc
from tokens.login_events.partitions import first_id

_DAY_LENGTH = len("2026-11-22")
PERIODS = {
    "1h": (gettext_lazy("Last hour"), timedelta(hours=1)),
    "1": (gettext_lazy("Last 24 hours"), timedelta(days=1)),
    "7": (gettext_lazy("Last 7 days"), timedelta(days=7)),
    "30": (gettext_lazy("Last 30 days"), timedelta(days=30)),
}


class TimeFilter(admin.ListFilter):
    """`period`, or `from` (the first moment) and `to` (the first one that is not included).

    Each of the two is a date, which is a whole day, or a date and a time; any other value is
    ignored.
    """

    title = gettext_lazy("time range")
    template = "staff/logins/time_filter.html"
    parameter_names = ("period", "from", "to")

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        asked: dict[str, Any] = {
            name: str(params.pop(name)[-1]) for name in self.parameter_names if name in params
        }
        self.used_parameters = asked
        self.period = asked.get("period", "")
        self.start = parsed_moment(asked.get("from", ""))
        self.end = parsed_moment(asked.get("to", ""), is_end=True)
        if self.period in PERIODS:
            self.start, self.end = timezone.now() - PERIODS[self.period][1], None

    def has_output(self) -> bool:
        return True

    def expected_parameters(self) -> list[str | None]:
        return list(self.parameter_names)

    def choices(self, changelist: Any) -> Iterator[Any]:
        """One choice: links to the periods, and the form with the other parameters of the list."""
        others = changelist.get_filters_params()
        others = {name: v for name, v in others.items() if name not in self.parameter_names}
        if changelist.query:
            others["q"] = [changelist.query]
        link = changelist.get_query_string
        yield {
            "periods": [
                (title, link({"period": name}, self.parameter_names[1:]), name == self.period)
                for name, (title, _length) in PERIODS.items()
            ],
            "from": "" if self.period else _for_input(self.start),
            "to": _for_input(self.end),
            "other_parameters": others,
        }

    def chip_text(self) -> str:
        """The range in words; empty if there is none."""
        if self.period:
            title, _length = PERIODS.get(self.period, (self.period, None))
            return str(title)
        ends = (
            _("from {moment}").format(moment=moment_text(self.start)) if self.start else "",
            _("before {moment}").format(moment=moment_text(self.end)) if self.end else "",
        )
        return " ".join(filter(None, ends))

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        if self.period and self.period not in PERIODS:  # its chip names it
            return queryset.none()
        if self.start is not None:
            queryset = queryset.filter(pk__gte=first_id(self.start))
        return queryset if self.end is None else queryset.filter(pk__lt=first_id(self.end))


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


def _for_input(moment: datetime | None) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}" if moment else ""
