"""Filters of a list: a table of choices each, and a chip above the list for each active one."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import capfirst, format_lazy
from django.utils.translation import gettext as _, gettext_lazy

EXPIRY_DAYS = (7, 30, 90)
Choices = Mapping[str, tuple[str | Promise, Q]]  # its title, and the condition on the rows


class ChoiceFilter(admin.SimpleListFilter):
    """No rows if the filter has no such choice: its chip names it, also in an export."""

    def conditions(self, at: datetime) -> Choices:
        """The choices of this moment, by their names in the address."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, title) for name, (title, _q) in self.conditions(timezone.now()).items()]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        if not (name := self.value()):
            return queryset
        _title, condition = self.conditions(timezone.now()).get(name, ("", None))
        return queryset.none() if condition is None else queryset.filter(condition)


class StateFilter(ChoiceFilter):
    title = gettext_lazy("state")
    parameter_name = "state"


def expires_within(field: str, at: datetime) -> dict[str, tuple[str | Promise, Q]]:
    """The choices *Expires within … days* of this field."""
    text = gettext_lazy("Expires within {days} days")
    return {
        str(days): (
            format_lazy(text, days=days),
            Q(**{f"{field}__gte": at, f"{field}__lt": at + timedelta(days=days)}),
        )
        for days in EXPIRY_DAYS
    }


@dataclass(frozen=True, slots=True)
class Chip:
    title: str
    value: str
    url: str


def chips_of(request: HttpRequest, changelist: Any) -> list[Chip]:
    """Every active filter of the list, the search first. No filter is active without a chip."""
    chips = []
    if changelist.query:
        chips.append(Chip(_("Search"), changelist.query, _url_without(request, ["q"])))
    for spec in changelist.filter_specs:
        if value := _value_of(request, spec, changelist):
            url = _url_without(request, spec.expected_parameters())
            chips.append(Chip(capfirst(str(spec.title)), value, url))
    return chips


def _value_of(request: HttpRequest, spec: Any, changelist: Any) -> str:
    """What the filter is set to, in words; empty if it is not active."""
    if hasattr(spec, "chip_text"):
        return str(spec.chip_text())
    values = [request.GET[name] for name in spec.expected_parameters() if name in request.GET]
    if not values:
        return ""
    chosen = (choice for choice in spec.choices(changelist) if choice.get("selected"))
    return str(next((choice["display"] for choice in chosen), values[0]))


def _url_without(request: HttpRequest, names: Collection[str]) -> str:
    others = request.GET.copy()
    for name in (*names, "p", "all"):  # the page means nothing for another selection of rows
        others.pop(name, None)
    return f"?{others.urlencode()}"
