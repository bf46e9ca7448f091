"""Which logins a search finds: by reference, address, client ID, TIN or name, newest first.

Each condition is the beginning of an index that ends with the key, so its newest logins come from
the index in order. Together in one OR, a database would read all of them first.
"""

import heapq
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

from django.db.models import Q, QuerySet

from identity.staff.framework.search import MAX_FOUND
from identity.staff.logins.named_taxpayers import name_conditions
from tokens.login_events.reference import reference_in

FOR_IT, BY_ITSELF, BY_IT = "for", "itself", "by"  # the part that a taxpayer has in a login


def search_conditions(term: str, role: str | None = None) -> list[Q]:
    """What the term can mean; `role` is the part of the taxpayer with this TIN."""
    reference = reference_in(term)
    if reference is not None:
        return [Q(pk=reference)]
    address = _address(term)
    if address is not None:
        return [Q(source_address=address)]
    tin = term.upper()
    parts = {
        FOR_IT: Q(subject=tin),
        BY_ITSELF: Q(subject=tin, actor=""),
        BY_IT: Q(actor=tin),
    }
    if role in parts:
        return [parts[role]]
    return [Q(client_id=term), Q(subject=tin), Q(actor=tin), *name_conditions(term)]


def newest_found(rows: "QuerySet[Any]", conditions: Iterable[Q]) -> "QuerySet[Any]":
    """The rows for a list: all of those of one condition, or the newest MAX_FOUND of several."""
    found = _that_find_something(rows, conditions)
    if len(found) <= 1:
        return all_found(rows, found)
    keys: set[Any] = set()
    for condition in found:
        newest = rows.filter(condition).order_by("-pk")
        keys.update(newest.values_list("pk", flat=True)[:MAX_FOUND])
    return rows.filter(pk__in=heapq.nlargest(MAX_FOUND, keys))


def all_found(rows: "QuerySet[Any]", conditions: Iterable[Q]) -> "QuerySet[Any]":
    """Every row, for an export, which has no first page."""
    either = Q()
    for condition in _that_find_something(rows, conditions):
        either |= condition
    return rows.filter(either) if either else rows.none()


def _that_find_something(rows: "QuerySet[Any]", conditions: Iterable[Q]) -> list[Q]:
    return [condition for condition in conditions if rows.filter(condition).order_by("-pk")[:1]]


def _address(text: str) -> str | None:
    try:
        return str(ip_address(text))
    except ValueError:
        return None
