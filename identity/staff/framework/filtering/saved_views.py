"""Saved views on a list: shown above it, saved with a name, opened by a link, deleted."""

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from identity.staff.framework.filtering.chips import active_parameters
from identity.staff.framework.filtering.saved_view import (
    MAX_NAME_LENGTH,
    MAX_QUERY_LENGTH,
    SavedView,
)
from identity.staff.framework.record_pages import RecordPages

_MAX_DIGITS = 18  # a longer number is no key
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
    """A list with saved views: the addresses that save and delete them."""

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
        key = request.POST.get("view", "")
        is_key = key.isdecimal() and len(key) <= _MAX_DIGITS
        view = self._views_of(request).filter(pk=int(key)).first() if is_key else None
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
