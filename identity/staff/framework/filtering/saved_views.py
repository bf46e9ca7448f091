"""What is shown above a list: a chip for each active filter, and saved views.

A chip has the name of the filter, its value and a link that removes it. A view is saved with a
name, opened by a link, deleted.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from identity.staff.framework.filtering.saved_view import (
    MAX_NAME_LENGTH,
    MAX_QUERY_LENGTH,
    SavedView,
)
from identity.staff.framework.lists import RecordPages, key_in

_PAGE = ("p", "all")  # of the list; they mean nothing for another selection of rows


@dataclass(frozen=True, slots=True)
class Chip:
    """One active filter, and the address of the list without it."""

    title: str
    value: str
    url: str


def chips_of(request: HttpRequest, changelist: Any) -> list[Chip]:
    """Every active filter of the list, the search first. No filter is active without a chip."""
    chips = []
    if changelist.query:
        chips.append(Chip(_("Search"), changelist.query, _url_without(request, ["q"])))
    for spec in changelist.filter_specs:
        if value := _value_of(request, spec, changelist):
            url = _url_without(request, spec.expected_parameters())
            chips.append(Chip(capfirst(str(spec.title)), value, url))
    return chips


def _value_of(request: HttpRequest, spec: Any, changelist: Any) -> str:
    """What the filter is set to, in words; empty if it is not active."""
    if hasattr(spec, "chip_text"):
        return str(spec.chip_text())
    values = [request.GET[name] for name in spec.expected_parameters() if name in request.GET]
    if not values:
        return ""
    chosen = (choice for choice in spec.choices(changelist) if choice.get("selected"))
    return str(next((choice["display"] for choice in chosen), values[0]))


def _url_without(request: HttpRequest, names: Collection[str]) -> str:
    others = request.GET.copy()
    for name in (*names, *_PAGE):
        others.pop(name, None)
    return f"?{others.urlencode()}"


def active_parameters(request: HttpRequest, changelist: Any) -> Iterator[tuple[str, str]]:
    """The query parameters of the active filters and the search, sorted: what a view stores."""
    names = {name for spec in changelist.filter_specs for name in spec.expected_parameters()}
    for name in sorted({"q", *names}):
        for value in request.GET.getlist(name):
            if value:
                yield name, value


MAX_VIEWS = 20  # of one person for one list


@dataclass(frozen=True, slots=True)
class ShownViews:
    """What the list shows; `query` is the present one, as a saved view has it."""

    saved: list[SavedView]
    query: str
    save_url: str
    delete_url: str
    max_name_length: ClassVar = MAX_NAME_LENGTH

    @property
    def may_save(self) -> bool:
        """Whether there is something to save that is not saved yet."""
        return bool(self.query) and all(view.query != self.query for view in self.saved)


class SavedViewPages(RecordPages):
    def shown_views(self, request: HttpRequest, changelist: Any) -> ShownViews:
        return ShownViews(
            saved=list(self._views_of(request)),
            query=urlencode(list(active_parameters(request, changelist))),
            save_url=reverse(f"admin:{self._url_name('save')}"),
            delete_url=reverse(f"admin:{self._url_name('delete')}"),
        )

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("views/save/", wrap(require_POST(self._save)), name=self._url_name("save")),
            path("views/delete/", wrap(require_POST(self._delete)), name=self._url_name("delete")),
        ]
        return own + super().get_urls()

    def _save(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        query = request.POST.get("query", "")
        name = " ".join(request.POST.get("name", "").split())
        if problem := self._problem(request, name, query):
            messages.error(request, problem)
        else:
            # A new saving of the same name replaces the view.
            _view, is_new = self._views_of(request).update_or_create(
                owner=request.user,
                list_name=self.opts.label_lower,
                name=name,
                defaults={"query": query},
            )
            saved = _("The view {name} is saved.")
            replaced = _("The view {name} had other filters. It now has these.")
            messages.success(request, (saved if is_new else replaced).format(name=name))
        return self._to_list(query)

    def _problem(self, request: HttpRequest, name: str, query: str) -> str:
        """Why the view cannot be saved; empty if it can."""
        if not name or len(name) > MAX_NAME_LENGTH or "\0" in name + query:
            text = _("Give the view a name with at most {max} characters.")
            return text.format(max=MAX_NAME_LENGTH)
        if not query or len(query) > MAX_QUERY_LENGTH:
            return _("There is no filter to save, or there are too many.")
        others = self._views_of(request).exclude(name=name)
        if others.count() >= MAX_VIEWS:
            text = _("You have {max} saved views of this list. Delete one first.")
            return text.format(max=MAX_VIEWS)
        return ""

    def _delete(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        key = key_in(request.POST.get("view", ""))
        view = self._views_of(request).filter(pk=key).first()
        if view is not None:
            view.delete()
            messages.success(request, _("The view {name} is deleted.").format(name=view.name))
        return self._to_list("")

    def _to_list(self, query: str) -> HttpResponse:
        # Parsed and encoded again, so that nothing else gets into the address.
        safe = QueryDict(query[:MAX_QUERY_LENGTH]).urlencode()
        return HttpResponseRedirect(f"{self.list_url()}?{safe}" if safe else self.list_url())

    def _views_of(self, request: HttpRequest) -> Any:
        return SavedView.objects.filter(owner=request.user.pk, list_name=self.opts.label_lower)

    def _url_name(self, what: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{what}_view"
