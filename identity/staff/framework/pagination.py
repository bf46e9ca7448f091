"""Pages of a list, and all of its rows, also where the table has millions."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.utils.functional import cached_property


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # no subscript at run time
    """Counts up to `max_rows`; further rows are found by search, not by paging."""

    max_rows = 1000

    @cached_property
    def count(self) -> int:
        """The number of rows, or `max_rows` if there are more."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            # Without the order: to sort rows that are only counted would read all of them.
            counted = rows.order_by()[: self.max_rows + 1].count()
        else:
            counted = len(rows)
        self.has_more = counted > self.max_rows
        return min(counted, self.max_rows)


def in_batches(rows: "QuerySet[Any]", size: int) -> Iterator[Any]:
    """All rows in the order of the list; each query begins after the last row of the one before.

    So nothing is open at the database, and memory holds one batch only, however many rows there
    are and however slowly they are read. The fields of the order name one row, are never NULL and
    have one direction.
    """
    order = [str(name) for name in rows.query.order_by]
    batch = list(rows[:size])
    while batch:
        yield from batch
        batch = list(rows.filter(_after(batch[-1], order))[:size]) if len(batch) == size else []


def _after(row: Any, order: Sequence[str]) -> Q:
    beyond = "lt" if order[0].startswith("-") else "gt"
    values = {name.removeprefix("-"): getattr(row, name.removeprefix("-")) for name in order}
    condition = Q()
    for name, value in reversed(values.items()):
        is_beyond = Q(**{f"{name}__{beyond}": value})
        condition = is_beyond | (Q(**{name: value}) & condition) if condition else is_beyond
    first, value = next(iter(values.items()))
    # Implied by the rest; but from it a database knows where in its index to begin.
    return Q(**{f"{first}__{beyond}e": value}) & condition
