"""Lists in parts: each begins behind the last row of the one before, at its place in an index.

The columns of an order name one row and are never NULL; with a minus sign the greatest comes first.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Q, QuerySet


def behind(order: Sequence[str], values: Sequence[Any]) -> Q:
    """The rows behind these values. The bound of the first column is what an index begins at."""
    first = order[0]
    bound = Q(**{f"{first.removeprefix('-')}__{'lte' if first[0] == '-' else 'gte'}": values[0]})
    found = Q()
    for length, last in enumerate(order):
        same = {name.removeprefix("-"): values[i] for i, name in enumerate(order[:length])}
        beyond = "lt" if last[0] == "-" else "gt"
        found |= Q(**same, **{f"{last.removeprefix('-')}__{beyond}": values[length]})
    return bound & found


def batches_of(rows: "QuerySet[Any]", size: int) -> Iterator[list[Any]]:
    """All rows in their order. Nothing is open at the database while the caller has a batch."""
    order = [str(name) for name in rows.query.order_by]
    batch = list(rows[:size])
    while batch:
        yield batch
        last = [getattr(batch[-1], column.removeprefix("-")) for column in order]
        batch = list(rows.filter(behind(order, last))[:size]) if len(batch) == size else []
