"""Search that only ever uses an index: one short query for each way to find a thing."""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from identity.staff.framework.pagination import CappedPaginator

_Row = TypeVar("_Row", bound=Model)

# A term that fits more rows is no search: it has to be narrowed, and the paginator says so.
MOST_FOUND = CappedPaginator.most + 1


def found(rows: "QuerySet[_Row]", ways: Iterable[Q]) -> "QuerySet[_Row]":
    """The rows that one of the ways finds, at most MOST_FOUND for each.

    Each way must be answered by one index. Together in one OR they would be answered by none.
    """
    keys: set[Any] = set()
    for way in ways:
        keys.update(rows.filter(way).order_by().values_list("pk", flat=True)[:MOST_FOUND])
    return rows.filter(pk__in=keys)


def taxpayer_ways(term: str, path: str = "") -> list[Q]:
    """Ways to find a taxpayer by `TIN`, `TIN:ROB` or the beginning of its name.

    `path` leads from the listed row to the taxpayer, for example `taxpayer__`.
    """
    tin, _, rob = term.upper().partition(":")
    if rob:
        return [Q(**{f"{path}tin": tin, f"{path}rob__startswith": rob})]
    return [Q(**{f"{path}tin__startswith": tin}), Q(**{f"{path}name__istartswith": term})]
