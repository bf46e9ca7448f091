"""View-only lists that stay fast with millions of rows.

In the admin only a task adds or changes anything, and it calls `taxpayers.services`.
"""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.views.main import SEARCH_VAR
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin

from identity.staff.framework.pagination import CappedPaginator
from identity.staff.framework.search import TooGeneral, search_by_index
from identity.staff.framework.unknown_filter import UnknownFilter
from taxpayers.redaction import HIDDEN

TOO_GENERAL = gettext_lazy(
    "This search is too general, and was stopped. Add another word, or search for a number."
)
_IS_TOO_GENERAL = "identity.search_is_too_general"


def is_too_general(request: HttpRequest) -> bool:
    """Whether the search of this request was stopped: the list is empty for that reason only."""
    return _IS_TOO_GENERAL in request.META


def mark_too_general(request: HttpRequest) -> None:
    """The search of this request was stopped; its list says so."""
    request.META[_IS_TOO_GENERAL] = True


class ListActionForm(ActionForm):
    """What to do with the selected rows."""

    action = forms.ChoiceField(
        label="",
        widget=forms.Select(attrs={"aria-label": gettext_lazy("Select action to run")}),
    )


class ViewOnlyList(ModelAdmin):
    """Searches, filters and pages with indexes only."""

    action_form = ListActionForm  # type: ignore[assignment]  # the theme's has its attributes
    paginator = CappedPaginator
    list_per_page = 25
    list_max_show_all = 0
    show_full_result_count = False
    sortable_by = ()  # the order of a list is the order of an index
    list_before_template: Any = "staff/framework/filtering/list_head.html"  # the theme reads this
    list_filter_sheet = True
    list_filter_submit = False
    show_facets = ShowFacets.NEVER  # each would count the whole table

    def search_conditions(self, term: str) -> Iterable[Q]:
        """Conditions that find records by this term, each answered by one index."""
        return ()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """What was typed comes in a body, and gets an address only without a secret."""
        if request.method == "POST" and SEARCH_VAR in request.POST:
            asked = request.POST.copy()
            asked.pop("csrfmiddlewaretoken", None)
            if HIDDEN in asked[SEARCH_VAR]:
                del asked[SEARCH_VAR]
            return HttpResponseRedirect(f"{request.path}?{asked.urlencode()}")
        response = super().changelist_view(request, extra_context)
        if is_too_general(request):
            messages.warning(request, TOO_GENERAL)
        return response

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> tuple["QuerySet[Any]", bool]:
        term = " ".join(search_term.split())
        if not term:
            return queryset, False
        try:
            return search_by_index(queryset, self.search_conditions(term)), False
        except TooGeneral:
            mark_too_general(request)
            return queryset.none(), False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Only what a filter offers: Django would allow any condition, with or without an index.

        Raises UnknownFilter.
        """
        if not any(lookup in _parameters(spec) for spec in self.get_list_filter(request)):
            name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
            raise UnknownFilter(lookup, reverse(name))
        return True

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        # No key has a NUL, and PostgreSQL refuses to look for one.
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _parameters(spec: Any) -> set[str]:
    """The query parameters that the filter reads."""
    if isinstance(spec, tuple):
        return {f"{spec[0]}__exact", f"{spec[0]}__isnull"}
    return set(getattr(spec, "parameter_names", ())) or {spec.parameter_name}
