"""Which logins a list shows: by reference, address, client ID or TIN, and by its filters.

Each condition of a search is the beginning of an index that ends with the key, so its newest logins
come from the index in order. Together in one OR, a database would read all of them first.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.framework.filters import ChoiceFilter, Choices
from identity.staff.framework.search import came_from, network_in, plain
from identity.staff.logins.reasons import ISSUED, staff_text_of
from taxpayers.moments import moment_text, parse_moment, start_of_day
from tokens.login_events.partitions import first_id
from tokens.login_events.reference import beginning_of_reference, reference_in
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS

PERIODS = {
    "1h": (gettext_lazy("Last hour"), timedelta(hours=1)),
    "1": (gettext_lazy("Last 24 hours"), timedelta(days=1)),
    "7": (gettext_lazy("Last 7 days"), timedelta(days=7)),
    "30": (gettext_lazy("Last 30 days"), timedelta(days=30)),
}


class TimeFilter(admin.ListFilter):
    """`period`, or `from` (the first moment) and `to` (the first one that is not included)."""

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
    """The moment in the text, in UTC, or None; a date is its first one, or that of the next day."""
    with suppress(ValueError, OverflowError):
        return parse_moment(text, lambda day: start_of_day(day + timedelta(days=int(is_end))))
    return None


def _for_input(moment: datetime | None) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%dT%H:%M}" if moment else ""


FOR_IT, BY_ITSELF, BY_IT = "for", "itself", "by"  # the part that a taxpayer has in a login


def search_conditions(term: str, role: str | None = None) -> list[Q]:
    """What the term can mean; `role` is the part of the taxpayer with this TIN."""
    reference = reference_in(term)
    if reference is not None:
        return [Q(pk=reference)]
    network = network_in(term)
    if network is not None:
        return [came_from(network, LoginEvent, "source_address")]
    begins = beginning_of_reference(term)
    if begins is not None:
        return [Q(pk__range=begins), Q(subject=term), Q(actor=term)]
    tin = plain(term.upper()) if any(map(str.isdigit, term)) and ":" not in term else term.upper()
    parts = {
        FOR_IT: Q(subject=tin),
        BY_ITSELF: Q(subject=tin, actor=""),
        BY_IT: Q(actor=tin),
    }
    if role in parts:
        return [parts[role]]
    return [Q(client_id=term), Q(subject=tin), Q(actor=tin)]


def all_found(rows: "QuerySet[Any]", conditions: Iterable[Q]) -> "QuerySet[Any]":
    """Every row, for an export, which has no first page."""
    either = Q(pk__in=())
    for condition in conditions:
        if rows.filter(condition).order_by("-pk")[:1]:
            either |= condition
    return rows.filter(either)


class ResultFilter(ChoiceFilter):
    title = gettext_lazy("result")
    parameter_name = "reason"

    def conditions(self, at: datetime) -> Choices:
        return {
            "issued": (ISSUED, Q(reason="")),
            "refused": (gettext_lazy("Refused, any reason"), ~Q(reason="")),
            **{
                str(reason): (staff_text_of(reason).what, Q(reason=reason))
                for reason, refusal in REFUSALS.items()
                if refusal.recorded
            },
        }


class RoleFilter(ChoiceFilter):
    """The part of the taxpayer that the search names; the search itself uses it."""

    title = gettext_lazy("part of the taxpayer")
    parameter_name = "role"

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self._is_search = bool(request.GET.get("q", "").strip())
        super().__init__(request, *args)

    def conditions(self, at: datetime) -> Choices:
        return {
            FOR_IT: (gettext_lazy("For it, also through an intermediary"), Q()),
            BY_ITSELF: (gettext_lazy("For it, by itself"), Q()),
            BY_IT: (gettext_lazy("By it, as an intermediary"), Q()),
        }

    def has_output(self) -> bool:
        return self._is_search

    def value(self) -> str | None:
        return super().value() if self._is_search else None
