"""What was typed into the search box, and where it is looked for, each with a group of links."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from identity.staff.display import list_url, record_url
from identity.staff.framework.badges import Badge
from identity.staff.framework.records import RecordAdmin, pages_of
from identity.staff.framework.search import limited_search, network_in, plain, text_of
from identity.staff.logins.reasons import badge_of_login
from taxpayers.facts.source_networks import Network
from taxpayers.models import Change, Intermediary, SystemUser, Taxpayer
from taxpayers.moments import moment_text
from tokens.login_events.reference import beginning_of_reference, reference_in
from tokens.models import LoginEvent, ProtectedApi

MAX_IN_GROUP = 6
MAX_LENGTH = 2_000  # whole messages are pasted, to find the reference in them
_MAX_TERM = 255  # as long as the longest name
_CLIENT_ID = re.compile(r"\bci_(?:live|test)_[0-9A-Za-z]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TypedText:
    term: str
    reference: UUID | None
    network: Network | None
    is_client_id: bool


def read_typed(text: str) -> TypedText:
    """Only of a text without a credential."""
    text = " ".join(text.replace("\0", " ").split())[:MAX_LENGTH]
    client_id = _CLIENT_ID.search(text)
    reference = None if client_id else reference_in(text)
    term = client_id[0] if client_id else str(reference) if reference else text[:_MAX_TERM]
    return TypedText(term, reference, network_in(term), client_id is not None)


@dataclass(frozen=True, slots=True)
class Hit:
    """One link. `is_exact`: what was typed names this record and no other one of its kind."""

    title: str
    detail: str
    url: str
    badge: str = ""
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """The hits of one kind; `more_url` leads to a list with all of them."""

    title: Any
    hits: Sequence[Hit]
    more_url: str = ""


@dataclass(frozen=True, slots=True)
class SearchedKind:
    """One kind of record: how its hits look, and what names one of them exactly."""

    model: type[Model]
    title: Any
    name: Callable[[Any], str]
    detail: Callable[[Any], str]
    identifier: Callable[[Any], str]


SYSTEM_USERS = SearchedKind(
    SystemUser,
    gettext_lazy("System users"),
    lambda row: row.name or row.client_id,
    lambda row: f"{row.client_id} · {row.taxpayer}",
    lambda row: row.client_id,
)
KINDS = (
    SearchedKind(
        Taxpayer,
        gettext_lazy("Taxpayers"),
        lambda row: row.name,
        lambda row: str(row.identifier),
        lambda row: str(row.identifier),
    ),
    SYSTEM_USERS,
    SearchedKind(
        Intermediary,
        gettext_lazy("Intermediaries"),
        lambda row: row.taxpayer.name,
        lambda row: str(row.taxpayer.identifier),
        lambda row: "",  # the taxpayer of the same identifier is the exact hit
    ),
    SearchedKind(
        ProtectedApi,
        gettext_lazy("Protected APIs"),
        lambda row: row.name,
        lambda row: f"{row.client_id} · {row.audience}",
        lambda row: row.client_id,
    ),
)


def registry_groups(request: HttpRequest, typed: TypedText) -> Iterator[Group]:
    """A group for each kind that this person may see; none if only logins can have it."""
    if typed.reference is not None:
        return
    for kind in KINDS if typed.network is None else (SYSTEM_USERS,):
        pages = pages_of(kind.model)
        if pages.has_view_permission(request):
            rows = _rows(request, pages, typed.term)
            hits = [_hit(kind, row, typed, pages.badge(row, timezone.now())) for row in rows]
            more_url = pages.list_url(q=typed.term) if len(hits) > MAX_IN_GROUP else ""
            yield Group(kind.title, hits[:MAX_IN_GROUP], more_url)


def _rows(request: HttpRequest, pages: RecordAdmin, term: str) -> list[Any]:
    """Those of a group and one more, unordered, so that an index can answer. Raises TooGeneral."""
    rows = pages.get_queryset(request).order_by()
    found: dict[Any, Any] = {}
    with limited_search():
        for condition in pages.search_conditions(term):
            for row in rows.filter(condition)[: MAX_IN_GROUP + 1]:
                found.setdefault(row.pk, row)
            if len(found) > MAX_IN_GROUP:
                break
    return list(found.values())


def _hit(kind: SearchedKind, row: Any, typed: TypedText, state: Badge) -> Hit:
    is_exact = plain(kind.identifier(row)).casefold() == plain(typed.term).casefold()
    return Hit(kind.name(row), kind.detail(row), record_url(row), state.html, is_exact)


_PERSON_FIELDS = ("username", "first_name", "last_name")


def activity_groups(request: HttpRequest, typed: TypedText) -> Iterator[Group]:
    """Those that this person may see."""
    if request.user.has_perm("tokens.view_loginevent"):
        yield Group(_("Logins"), list(_logins(typed)))
    if request.user.has_perm("taxpayers.view_change"):
        yield Group(_("Changes by a person"), list(_people(typed.term)))


def _logins(typed: TypedText) -> Iterator[Hit]:
    if typed.reference is not None:
        event = LoginEvent.objects.filter(pk=typed.reference).first()
        if event is None:
            yield Hit(
                _("No login with this reference is recorded"),
                _("Open the list of logins to see why."),
                list_url(LoginEvent, q=typed.term),
            )
        else:
            title = _("Login of {moment}").format(moment=moment_text(event.at))
            badge = badge_of_login(event).html
            yield Hit(title, event.client_id, record_url(event), badge, is_exact=True)
    elif typed.network is not None:
        address = text_of(typed.network)
        title = _("Logins from {address}").format(address=address)
        yield Hit(title, "", list_url(LoginEvent, q=address))
    elif (begins := beginning_of_reference(typed.term)) is not None:
        for event in LoginEvent.objects.filter(pk__range=begins).order_by("-pk")[:MAX_IN_GROUP]:
            title = _("Login of {moment}").format(moment=moment_text(event.at))
            yield Hit(title, str(event.pk), record_url(event), badge_of_login(event).html)
    elif typed.is_client_id:
        yield Hit(_("Logins of this client ID"), typed.term, list_url(LoginEvent, q=typed.term))


def _people(term: str) -> Iterator[Hit]:
    """Staff by user name or name; and who is only in the history, such as a command."""
    condition = Q()
    for word in term.split():
        in_one = (Q(**{f"{name}__icontains": word}) for name in _PERSON_FIELDS)
        condition &= Q(*in_one, _connector=Q.OR)
    people = User.objects.filter(condition).order_by("username")[:MAX_IN_GROUP] if condition else ()
    for person in people:
        name = person.get_full_name() or person.username
        if person.username == term:
            yield _changes_by(name, term)
        else:
            yield Hit(name, person.username, pages_of(Change).list_url(by=person.username))
    is_found = any(person.username == term for person in people)
    if not is_found and Change.objects.filter(by=term).exists():
        yield _changes_by(term, term)


def _changes_by(name: str, username: str) -> Hit:
    """The exact hit: its group does not say that it leads to changes."""
    detail = f"{username} · {_('Changes by a person')}"
    return Hit(name, detail, pages_of(Change).list_url(by=username), is_exact=True)
