"""Pages of a list without counting a table of millions (issue: lists stay fast)."""

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # no subscript at run time
    """Counts to `most` and no further; what lies behind is found by searching, not by paging."""

    template_name = "staff/framework/pagination.html"  # the theme asks for it
    most = 1000

    @cached_property
    def count(self) -> int:
        """How many there are, or `most` if there are more."""
        rows = self.object_list
        if isinstance(rows, QuerySet):
            # In any order: to sort what is only counted would read all of it.
            counted = rows.order_by()[: self.most + 1].count()
        else:
            counted = len(rows)
        self.has_more = counted > self.most
        return min(counted, self.most)
