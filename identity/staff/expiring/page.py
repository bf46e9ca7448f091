"""*Ending soon*: the secrets, system users, permissions and intermediaries that end, as work.

One list, sorted by end; select several and extend them in one task. The same as a list to print.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.expiring.kinds import KIND_NAMES, KINDS, EndingKind
from identity.staff.expiring.listing import DEFAULT, MAX_ROWS, choices, keys_of, period_of, rows_of
from identity.staff.expiring.renewal import RENEW, chosen_of, task_of
from identity.staff.framework.lists import page_frame
from identity.staff.sessions.unsaved_entries import UnsavedEntries, take_entries

PER_PAGE = 25
MAX_PRINTED = 100
_TITLE = gettext_lazy("Ending soon")


@dataclass(frozen=True, slots=True)
class Filters:
    """What the address asks for: one kind or (empty) all, and a period."""

    kind: str
    within: str
    seen: tuple[EndingKind, ...] = field(default=())

    @classmethod
    def of(cls, request: HttpRequest) -> "Filters":
        """Any other value is the default."""
        seen = tuple(kind for kind in KINDS if kind.may_be_seen(request))
        kind, within = request.GET.get("kind", ""), request.GET.get("within", "")
        return cls(
            kind if kind in {one.name for one in seen} else "",
            within if within in dict(choices()) else DEFAULT,
            seen,
        )

    @property
    def kinds(self) -> tuple[EndingKind, ...]:
        return (KIND_NAMES[self.kind],) if self.kind else self.seen

    def url(self, **other: str) -> str:
        asked = {"kind": self.kind, "within": self.within} | other
        query = urlencode({name: value for name, value in asked.items() if value})
        return f"{reverse('admin:ending_soon')}?{query}"


def ending_soon(request: HttpRequest) -> HttpResponse:
    """The list; as a POST, the task for what was selected."""
    filters = Filters.of(request)
    if not filters.seen:
        raise PermissionDenied
    at = timezone.now()
    if request.method == "POST":
        return _renew(request, filters, at)
    restored = take_entries(request)
    if restored is not None and "selected" in restored.data:
        return _renew(request, filters, at, restored)
    keys, has_more = keys_of(filters.kinds, period_of(filters.within, at))
    context = _context(request, at) | {
        "filters": filters,
        "kind_links": _kind_links(filters),
        "period_links": [
            (title, filters.url(within=name), name == filters.within) for name, title in choices()
        ],
        "count": len(keys),
        "has_more": has_more,
        "max_rows": MAX_ROWS,
    }
    if "print" in request.GET:
        context |= {"rows": rows_of(keys[:MAX_PRINTED], at), "max_printed": MAX_PRINTED}
        return TemplateResponse(request, "staff/expiring/print.html", context)
    page = Paginator(keys, PER_PAGE).get_page(request.GET.get("p"))
    rows = rows_of(list(page.object_list), at)
    context |= {
        "page": page,
        "rows": [(row, task_of(request, row)) for row in rows],
        "print_url": filters.url(print="1"),
        "page_url": filters.url(p=""),
    }
    context["may_renew"] = any(link.may_select for _row, link in context["rows"])
    return TemplateResponse(request, "staff/expiring/list.html", context)


def _kind_links(filters: Filters) -> list[tuple[Any, str, bool]]:
    every = (_("All kinds"), filters.url(kind=""), not filters.kind)
    return [
        every,
        *(
            (kind.title, filters.url(kind=kind.name), kind.name == filters.kind)
            for kind in filters.seen
        ),
    ]


def _context(request: HttpRequest, at: datetime, breadcrumb: Any = "") -> dict[str, Any]:
    further = [(breadcrumb, "")] if breadcrumb else []
    return page_frame(request, (_TITLE, reverse("admin:ending_soon")), *further) | {"at": at}


def _renew(
    request: HttpRequest, filters: Filters, at: datetime, restored: UnsavedEntries | None = None
) -> HttpResponse:
    values = (restored.data if restored else request.POST).getlist("selected")
    chosen = chosen_of(request, values)
    if not chosen:
        messages.error(request, _("Select at least one row."))
        return HttpResponseRedirect(filters.url())
    context = _context(request, at, RENEW.title) | {
        "hidden": [("selected", value) for value in values],
        "back": filters.url(),
    }
    page = RENEW.respond(request, chosen, context, at, restored)
    return page or HttpResponseRedirect(filters.url())
