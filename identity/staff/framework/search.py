"""Search that always uses an index: one short query for each condition."""

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from identity.staff.framework.pagination import CappedPaginator

_Row = TypeVar("_Row", bound=Model)

# The paginator shows no more rows; it asks for a more precise search instead.
MAX_FOUND = CappedPaginator.max_rows + 1


def search_by_index(rows: "QuerySet[_Row]", conditions: Iterable[Q]) -> "QuerySet[_Row]":
    """The rows that match one of the conditions, at most MAX_FOUND for each.

    Each condition must be answered by one index. Together in one OR, none of them would use it.
    """
    keys: set[Any] = set()
    for condition in conditions:
        matching = rows.filter(condition).order_by()
        keys.update(matching.values_list("pk", flat=True)[:MAX_FOUND])
    return rows.filter(pk__in=keys)


def taxpayer_conditions(term: str, path: str = "") -> list[Q]:
    """Conditions that find a taxpayer by its TIN, `TIN:ROB`, its ROB number or parts of its name.

    `path` leads from the listed row to the taxpayer, for example `taxpayer__`.
    """
    by_name = Q(**{f"{path}name__has_words": term})
    if " " in term:
        return [by_name]
    tin, _, rob = term.upper().partition(":")
    if rob:
        return [Q(**{f"{path}tin": tin, f"{path}rob__startswith": rob})]
    # Both in one condition: PostgreSQL adds up what two indexes of one table found.
    by_number = Q(**{f"{path}tin__startswith": tin}) | Q(**{f"{path}rob__startswith": tin})
    return [by_number, by_name]
