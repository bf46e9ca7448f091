"""*Ending soon*: the secrets, system users, permissions and intermediaries that end, as work."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from identity.staff.expiring import listing
from identity.staff.expiring.kinds import KIND_NAMES, KINDS, EndingKind
from identity.staff.framework.lists import Text, page_frame
from identity.staff.framework.records import task_named
from identity.staff.framework.tasks import Button

PER_PAGE = 25


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
            within if within in dict(listing.choices()) else listing.DEFAULT,
            seen,
        )

    @property
    def kinds(self) -> tuple[EndingKind, ...]:
        return (KIND_NAMES[self.kind],) if self.kind else self.seen

    def url(self, **other: str) -> str:
        asked = {"kind": self.kind, "within": self.within} | other
        query = {name: value for name, value in asked.items() if value}
        return reverse("admin:ending_soon", query=query)


def ending_soon(request: HttpRequest) -> HttpResponse:
    """The list, each row with the task that renews it."""
    filters = Filters.of(request)
    if not filters.seen:
        raise PermissionDenied
    at = timezone.now()
    keys, has_more = listing.keys_of(filters.kinds, filters.within, at)
    page = Paginator(keys, PER_PAGE).get_page(request.GET.get("p"))
    rows = listing.rows_of(list(page.object_list), at)
    context = page_frame(request, (_("Ending soon"), "")) | {
        "filters": filters,
        "kind_links": [
            (_("All kinds"), filters.url(kind=""), not filters.kind),
            *(
                (one.title, filters.url(kind=one.name), one.name == filters.kind)
                for one in filters.seen
            ),
        ],
        "period_links": [
            (title, filters.url(within=name), name == filters.within)
            for name, title in listing.choices()
        ],
        "count": len(keys),
        "has_more": has_more,
        "max_rows": listing.MAX_ROWS,
        "page": page,
        "rows": [(row, _button(request, row)) for row in rows],
        "lists": list(_lists(request, filters)),
        "page_url": filters.url(p=""),
    }
    return TemplateResponse(request, "staff/expiring/list.html", context)


def _button(request: HttpRequest, row: listing.ExpiringRow) -> Button | None:
    """What extends or replaces it; None if that is not needed, or not for this person."""
    task = task_named(type(row.page), row.kind.task_name(row.page))
    is_possible = not row.to_do and task.is_allowed(request)
    return task.button_for(row.page) if is_possible else None


def _lists(request: HttpRequest, filters: Filters) -> Iterator[tuple[Text, str]]:
    """Where this person extends several of one kind: the list with the same choice of time."""
    for kind in filters.kinds:
        if kind.is_extended and (task := task_named(kind.model, kind.extend_task)).is_allowed(
            request
        ):
            yield kind.plural, task.admin.list_url(state=filters.within)
