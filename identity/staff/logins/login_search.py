"""Which logins a list shows: by reference, address, client ID or TIN, and by its filters.

Each condition of a search is the beginning of an index that ends with the key, so its newest logins
come from the index in order. Together in one OR, a database would read all of them first.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.text import slugify
from django.utils.translation import gettext_lazy

from identity.staff.framework.filters import ChoiceFilter, Choices
from identity.staff.framework.networks import came_from, network_in
from identity.staff.framework.search import MAX_FOUND, limited_search, plain
from identity.staff.logins.reasons import ISSUED, staff_text_of
from tokens.login_events.reference import beginning_of_reference, reference_in
from tokens.models import LoginEvent
from tokens.refusals.table import REFUSALS

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


def newest_found(rows: "QuerySet[Any]", conditions: Iterable[Q]) -> "QuerySet[Any]":
    """The newest MAX_FOUND rows, for a list. Raises TooGeneral."""
    keys: set[Any] = set()
    with limited_search():
        for condition in conditions:
            newest = rows.filter(condition).order_by("-pk")
            keys.update(newest.values_list("pk", flat=True)[:MAX_FOUND])
    return rows.filter(pk__in=heapq.nlargest(MAX_FOUND, keys))


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


class FixedByFilter(ChoiceFilter):
    title = gettext_lazy("who can fix it")
    parameter_name = "fixed_by"

    def conditions(self, at: datetime) -> Choices:
        reasons = defaultdict(list)
        for reason, refusal in REFUSALS.items():
            if refusal.recorded:
                reasons[refusal.fixed_by].append(reason)
        return {
            slugify(who): (staff_text_of(found[0]).who, Q(reason__in=found))
            for who, found in reasons.items()
        }


class RoleFilter(ChoiceFilter):
    """The part of the taxpayer that the search names; the search itself uses it."""

    title = gettext_lazy("part of the taxpayer")
    parameter_name = "role"

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        self._is_search = bool(request.GET.get("q", "").strip())
        super().__init__(request, params, model, model_admin)

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
