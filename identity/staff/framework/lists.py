"""One kind of record: its view-only list, which stays fast with millions of rows, and its pages."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin import ShowFacets
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.helpers import ActionForm
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _, gettext_lazy
from unfold.admin import ModelAdmin

from identity.staff.display import list_url, record_url
from identity.staff.framework.search import (
    CappedPaginator,
    TooGeneral,
    search_by_index,
    taxpayer_conditions,
)

TOO_GENERAL = gettext_lazy(
    "This search is too general, and was stopped. Add another word, or search for a number."
)
_KEY_DIGITS = 19  # of the largest integer in a database
_IS_TOO_GENERAL = "identity.search_is_too_general"


def is_too_general(request: HttpRequest) -> bool:
    """Whether the search of this request was stopped: the list is empty for that reason only."""
    return _IS_TOO_GENERAL in request.META


def column(name: str, title: Any, value: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A column of a list; `name` names its style."""

    @admin.display(description=title)
    def shown(row: Any) -> Any:
        return value(row)

    shown.__name__ = name
    return shown


Text = str | Promise
Context = dict[str, Any]  # of a template


def page_frame(request: HttpRequest, *breadcrumbs: tuple[Any, str]) -> dict[str, Any]:
    """The frame of a page, with its title and the way to it; a page has an empty address there."""
    request.current_app = admin.site.name
    title, _url = breadcrumbs[-1]
    return {
        **admin.site.each_context(request),
        "breadcrumbs": list(breadcrumbs),
        "title": title,
    }


def key_in(text: str) -> int | None:
    """The key of a record, as an address or a form has it; None: it is no key."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _KEY_DIGITS else None


class RecordNotFound(Http404):
    """Its text is shown to staff. The text of any other Http404 is for developers, and is not."""


class UnknownFilter(DisallowedModelAdminLookup):
    """`name` is shown to staff, cut; `list_url` is the list without filters."""

    def __init__(self, name: str, list_url: str) -> None:
        super().__init__("the list has no such filter")
        self.name = name[:60]
        self.list_url = list_url


class ListActionForm(ActionForm):
    action = forms.ChoiceField(
        label="",
        widget=forms.Select(attrs={"aria-label": gettext_lazy("Select action to run")}),
    )


class RecordPages(ModelAdmin):
    """The list searches, filters and pages with indexes only."""

    action_form = ListActionForm  # type: ignore[assignment]  # the theme's has its attributes
    paginator = CappedPaginator
    joined: ClassVar[tuple[str, ...]] = ()  # records that each row is loaded with, in one query
    prefetched: ClassVar[tuple[str, ...]] = ()  # in a query for each
    paths_to_taxpayers: ClassVar[tuple[str, ...]] = ()  # by which a search finds rows
    ordering: ClassVar[tuple[Any, ...]] = ("-pk",)
    list_per_page = 25
    list_max_show_all = 0
    show_full_result_count = False
    linked_columns = 1  # the first ones lead to the record
    sortable_by = ()  # the order of a list is the order of an index
    list_before_template: Any = "staff/framework/list_head.html"  # the theme reads this
    list_filter_sheet = True
    list_filter_submit = False
    show_facets = ShowFacets.NEVER  # each would count the whole table

    def record_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """The record. Raises RecordNotFound, or PermissionDenied if this person may not see it."""
        record = self.get_object(request, unquote(object_id))
        if record is None:
            raise RecordNotFound(_("This record does not exist."))
        if not self.has_view_permission(request, record):
            raise PermissionDenied
        return record

    def list_title(self) -> str:
        return capfirst(str(self.opts.verbose_name_plural))

    def record_title(self, record: Any) -> str:
        """A short title of the record, for the browser's tab and the breadcrumbs."""
        return str(record)

    def lead(self, record: Any) -> str:
        """The record as a task names it below its title."""
        return str(record)

    def url_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def list_url(self, **query: Any) -> str:
        return list_url(self.model, **query)

    def record_url(self, record: Any) -> str:
        return record_url(record) if record is not None else self.list_url()

    def page_context(
        self, request: HttpRequest, record: Any, at: datetime, breadcrumb: Text = ""
    ) -> dict[str, Any]:
        """The context of every page: the frame, the breadcrumbs, the record and the moment."""
        breadcrumbs: list[tuple[Any, str]] = [(self.list_title(), self.list_url())]
        if record is not None:
            breadcrumbs.append((self.record_title(record), self.record_url(record)))
        if breadcrumb:
            breadcrumbs.append((breadcrumb, ""))
        return page_frame(request, *breadcrumbs) | {"record": record, "at": at}

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Any]":
        rows: QuerySet[Any] = super().get_queryset(request)
        joined = rows.select_related(*self.joined) if self.joined else rows
        return joined.prefetch_related(*self.prefetched)

    def search_conditions(self, term: str) -> Iterable[Q]:
        """Conditions that find records by this term, each answered by one index."""
        paths = self.paths_to_taxpayers
        return chain.from_iterable(taxpayer_conditions(term, path) for path in paths)

    def found(self, request: HttpRequest, rows: "QuerySet[Any]", term: str) -> "QuerySet[Any]":
        """The rows that this term finds. Raises TooGeneral."""
        return search_by_index(rows, self.search_conditions(term))

    def get_search_results(
        self, request: HttpRequest, queryset: "QuerySet[Any]", search_term: str
    ) -> tuple["QuerySet[Any]", bool]:
        term = " ".join(search_term.split())
        if not term:
            return queryset, False
        try:
            return self.found(request, queryset, term), False
        except TooGeneral:
            request.META[_IS_TOO_GENERAL] = True
            return queryset.none(), False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Raises UnknownFilter if no filter offers it: Django would allow what has no index."""
        if not any(lookup in _parameters(spec) for spec in self.get_list_filter(request)):
            raise UnknownFilter(lookup, self.list_url())
        return True

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        # No key has a NUL, and PostgreSQL refuses to look for one.
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        # Django shows the search; `search_conditions` does it.
        return ("pk",) if self.search_help_text else ()

    def get_list_display_links(self, request: HttpRequest, list_display: Sequence[Any]) -> Any:
        return list_display[: self.linked_columns]

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


def _parameters(spec: Any) -> set[str]:
    if isinstance(spec, tuple):
        return {f"{spec[0]}__exact", f"{spec[0]}__isnull"}
    return set(getattr(spec, "parameter_names", ())) or {spec.parameter_name}
