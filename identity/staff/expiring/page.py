"""*Ending soon*: the secrets, system users, permissions and intermediaries that end, as work."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from identity.staff.expiring.kinds import KIND_NAMES, KINDS, EndingKind
from identity.staff.framework.filters import EXPIRY_DAYS
from identity.staff.framework.lists import Text, page_frame
from identity.staff.framework.records import task_named
from identity.staff.framework.tasks import Button
from taxpayers.facts.validity import is_over
from taxpayers.models import Credential, SystemUser, Taxpayer
from taxpayers.moments import moment_text
from tokens.models import ProtectedApi, ProtectedApiSecret

ENDED = "expired"
ENDED_DAYS = 30
DEFAULT = "30"


def choices() -> list[tuple[str, str]]:
    """The name of each period in an address, and its title."""
    within, ended = _("Within {days} days"), _("Ended in the last {days} days")
    periods = [(str(days), within.format(days=days)) for days in EXPIRY_DAYS]
    return [*periods, (ENDED, ended.format(days=ENDED_DAYS))]


def days_left(end: datetime, at: datetime) -> str:
    """In whole days of the calendar, in words."""
    days = (timezone.localtime(end).date() - timezone.localtime(at).date()).days
    if is_over(end, at):
        words = {0: _("ended today"), -1: _("ended yesterday")}
        text = ngettext("ended {count} day ago", "ended {count} days ago", -days)
    else:
        words = {0: _("today"), 1: _("tomorrow")}
        text = ngettext("in {count} day", "in {count} days", days)
    return words.get(days) or text.format(count=abs(days))


MAX_ROWS = 1_000

Key = tuple[datetime, str, int]  # the end, the name of the kind, the key of the record


@dataclass(frozen=True, slots=True)
class ExpiringRow:
    kind: EndingKind
    record: Any
    page: Model
    owner: Taxpayer | ProtectedApi
    end: datetime
    left: str
    successor: Any = None  # of a secret: another one of its owner that is valid for longer

    @property
    def last_use(self) -> str:
        """When it last got a token or an answer, in words."""
        match self.record:
            case Credential() | SystemUser():
                never = _("Never")
            case ProtectedApiSecret():  # before it was recorded it may have been used as well
                never = _("No use recorded")
            case _:
                return "—"
        return moment_text(used) if (used := self.record.last_used_at) else never

    @property
    def to_do(self) -> Text:
        """What is to be done instead of extending or replacing it; empty: one of these."""
        if isinstance(self.page, SystemUser) and self.page.blocked_at is not None:
            return _("Nothing: it is blocked")
        if self.successor is None:
            return ""
        if self.successor.last_used_at is None:
            return _("The new one is not used yet: call the owner")
        return _("Nothing: the new one is in use")


def keys_of(kinds: Iterable[EndingKind], within: str, at: datetime) -> tuple[list[Key], bool]:
    """What ends within so many days, or has ended (the latest first); and if there is more."""
    found: list[Key] = []
    is_past = within == ENDED
    days = timedelta(days=ENDED_DAYS if is_past else int(within))
    since, before = (at - days, at) if is_past else (at, at + days)
    for kind in kinds:
        order = [f"-{kind.end}", "-pk"] if is_past else [kind.end, "pk"]
        bounds = {f"{kind.end}__gte": since, f"{kind.end}__lt": before}
        rows = kind.rows().filter(**bounds).order_by(*order).values_list(kind.end, "pk")
        found += [(end, kind.name, key) for end, key in rows[: MAX_ROWS + 1]]
    found.sort(reverse=is_past)
    return found[:MAX_ROWS], len(found) > MAX_ROWS


def rows_of(keys: Sequence[Key], at: datetime) -> list[ExpiringRow]:
    """The lines for these keys, in their order."""
    by_kind: dict[str, list[int]] = {}
    for _end, name, key in keys:
        by_kind.setdefault(name, []).append(key)
    records = {name: KIND_NAMES[name].load(pks) for name, pks in by_kind.items()}
    lines = []
    for end, name, key in keys:
        if record := records[name].get(key):
            kind, left = KIND_NAMES[name], days_left(end, at)
            page, successor = kind.page(record), _successor(kind, record, at)
            owner = getattr(page, "taxpayer", page)
            lines.append(ExpiringRow(kind, record, page, owner, end, left, successor))
    return lines


def _successor(kind: EndingKind, record: Any, at: datetime) -> Any:
    """The live secret of the same owner that ends last, if it ends later than this one."""
    if kind.is_extended:
        return None
    others = kind.page(record).credentials.all()
    later = [one for one in others if one.is_live(at) and one.expires_at > record.expires_at]
    return max(later, key=lambda one: one.expires_at, default=None)


PER_PAGE = 25


def ending_soon(request: HttpRequest) -> HttpResponse:
    """The list, each row with the task that renews it; any other kind or period is the default."""
    seen = [kind for kind in KINDS if kind.may_be_seen(request)]
    if not seen:
        raise PermissionDenied
    at, asked = timezone.now(), request.GET
    chosen = [kind for kind in seen if kind.name == asked.get("kind")]
    name, kinds = chosen[0].name if chosen else "", chosen or seen
    within = asked["within"] if asked.get("within") in dict(choices()) else DEFAULT

    def url(**other: str) -> str:
        query = {"kind": name, "within": within} | other
        return reverse("admin:ending_soon", query={n: v for n, v in query.items() if v})

    keys, has_more = keys_of(kinds, within, at)
    page = Paginator(keys, PER_PAGE).get_page(asked.get("p"))
    context = page_frame(request, (_("Ending soon"), "")) | {
        "kind_links": [
            (_("All kinds"), url(kind=""), not chosen),
            *((kind.title, url(kind=kind.name), kind in chosen) for kind in seen),
        ],
        "period_links": [(title, url(within=n), n == within) for n, title in choices()],
        "count": len(keys),
        "has_more": has_more,
        "max_rows": MAX_ROWS,
        "page": page,
        "rows": [(row, _button(request, row)) for row in rows_of(list(page.object_list), at)],
        "lists": list(_lists(request, kinds, within)),
        "page_url": url(),
    }
    return TemplateResponse(request, "staff/expiring/list.html", context)


def _button(request: HttpRequest, row: ExpiringRow) -> Button | None:
    """What extends or replaces it; None if that is not needed, or not for this person."""
    task = task_named(type(row.page), row.kind.task_name(row.page))
    is_possible = not row.to_do and task.is_allowed(request)
    return task.button_for(row.page) if is_possible else None


def _lists(
    request: HttpRequest, kinds: Iterable[EndingKind], within: str
) -> Iterator[tuple[Text, str]]:
    """Where this person extends several of one kind: the list with the same choice of time."""
    for kind in kinds:
        if kind.is_extended:
            task = task_named(kind.model, kind.task_name())
            if task.is_allowed(request):
                yield kind.plural, task.admin.list_url(state=within)
