"""Lists that stay fast with millions of rows, and through which nothing can be written.

Nothing is added, changed or deleted in the admin but by a task, which calls `taxpayers.services`.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import ShowFacets
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from identity.staff.framework.pagination import CappedPaginator
from identity.staff.framework.search import found


class ViewOnlyList(ModelAdmin):
    """Finds, filters and pages by index alone."""

    paginator = CappedPaginator
    list_per_page = 25
    list_max_show_all = 0
    show_full_result_count = False
    sortable_by = ()  # the order of a list is the order of an index
    list_filter_sheet = True
    list_filter_submit = False
    show_facets = ShowFacets.NEVER  # each would count the whole table

    def ways_to_find(self, term: str) -> Iterable[Q]:
        """Ways to find records by this term, each answered by one index."""
        return ()

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> tuple["QuerySet[Any]", bool]:
        term = " ".join(search_term.split())
        return (found(queryset, self.ways_to_find(term)) if term else queryset), False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Only what a filter offers: Django allows any condition on any column, index or not."""
        return any(lookup in _parameters(spec) for spec in self.get_list_filter(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _parameters(spec: Any) -> set[str]:
    """The parameters by which a filter is chosen in the address of a list."""
    if isinstance(spec, tuple):
        return {f"{spec[0]}__exact", f"{spec[0]}__isnull"}
    return {spec.parameter_name}
