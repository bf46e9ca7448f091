"""A chip above a list for each active filter: its name, its value and a link that removes it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext as _


@dataclass(frozen=True, slots=True)
class Chip:
    """One active filter, and the address of the list without it."""

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
