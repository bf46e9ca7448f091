"""Pages of a list that never count a table of millions of rows."""

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # no subscript at run time
    """Counts up to `max_rows`; further rows are found by search, not by paging."""

    template_name = "staff/framework/pagination.html"  # the theme reads this
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
