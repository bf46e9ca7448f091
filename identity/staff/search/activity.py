"""Logins by reference or address, and what a person of the staff changed."""

from collections.abc import Iterator
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from identity.staff.display import moment_text, record_url
from identity.staff.logins.reasons import badge_of_login
from identity.staff.search.found import MAX_IN_GROUP, Group, Hit
from identity.staff.search.typed import TypedText
from taxpayers.models import Change
from tokens.models import LoginEvent

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
                _logins_url(typed.term),
            )
        else:
            title = _("Login of {moment}").format(moment=moment_text(event.at))
            badge = badge_of_login(event).html
            yield Hit(title, event.client_id, record_url(event), badge, is_exact=True)
    elif typed.address is not None:
        title = _("Logins from {address}").format(address=typed.address)
        yield Hit(title, "", _logins_url(typed.address))
    elif typed.is_client_id:
        yield Hit(_("Logins of this client ID"), typed.term, _logins_url(typed.term))


def _people(term: str) -> Iterator[Hit]:
    """Staff by user name or name; and who is only in the history, such as a command."""
    condition = Q()
    for word in term.split():
        condition &= Q(
            *(Q(**{f"{name}__icontains": word}) for name in _PERSON_FIELDS), _connector=Q.OR
        )
    people = User.objects.filter(condition).order_by("username")[:MAX_IN_GROUP] if condition else ()
    names = set()
    for person in people:
        names.add(person.username)
        name = person.get_full_name() or person.username
        if person.username == term:
            yield _changes_by(name, term)
        else:
            yield Hit(name, person.username, _changes_url(person.username))
    if term not in names and Change.objects.filter(by=term).exists():
        yield _changes_by(term, term)


def _changes_by(name: str, username: str) -> Hit:
    """The exact hit: its group does not say that it leads to changes."""
    detail = f"{username} · {_('Changes by a person')}"
    return Hit(name, detail, _changes_url(username), is_exact=True)


def _logins_url(term: str) -> str:
    return f"{reverse('admin:tokens_loginevent_changelist')}?{urlencode({'q': term})}"


def _changes_url(username: str) -> str:
    return f"{reverse('admin:taxpayers_change_report')}?{urlencode({'by': username})}"
