"""How long a staff session lasts, and what was entered in a form that was sent after its end.

Only the row of an ended session proves that a form came from an officer, so a stranger can store
nothing here. Only the same account gets it back, in the form with the same address. Passwords,
files, keys and client secrets are left out, and so is a task for records selected in a list.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.csrf import csrf_failure
from django.views.decorators.http import require_safe

from taxpayers.redaction import hide_pasted_secrets
from tokens.http import Handler

_SECONDS = 3600  # to sign in
_MOST_CHARACTERS = 100_000
_IN_SESSION = "unsaved_entries"
_NEVER_STORED = {"csrfmiddlewaretoken", "keys"}  # among public keys there could be a private one


@dataclass(frozen=True, slots=True)
class UnsavedEntries:
    data: QueryDict
    had_files: bool


def owner_of_ended_session(request: HttpRequest) -> int | None:
    """The id of the account that this browser was signed in with; None if that is not known."""
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    session = Session.objects.filter(session_key=key, expire_date__lte=timezone.now()).first()
    owner = session.get_decoded().get(SESSION_KEY) if session is not None else None
    return int(owner) if owner is not None else None


def fetch_after_sign_in(request: HttpRequest, owner: int) -> None:
    """Called at each sign-in: the session has the entries until their form is opened."""
    if (entries := cache.get(_cache_key(owner))) is not None:
        cache.delete(_cache_key(owner))
        request.session[_IN_SESSION] = entries


def take_entries(request: HttpRequest) -> UnsavedEntries | None:
    """What was entered in the form at this address; it is returned once."""
    stored = request.session.get(_IN_SESSION)
    if request.method != "GET" or stored is None or stored["url"] != request.get_full_path():
        return None
    del request.session[_IN_SESSION]
    data = QueryDict(mutable=True)
    for name, values in stored["values"].items():
        data.setlist(name, values)
    return UnsavedEntries(data, stored["had_files"])


def _entries_of(request: HttpRequest) -> dict[str, Any] | None:
    """What is stored of the form that was sent; None if there is none to store."""
    if request.method != "POST" or ACTION_CHECKBOX_NAME in request.POST:  # of a list: too old then
        return None
    values = {
        name: [hide_pasted_secrets(value) for value in given]
        for name, given in request.POST.lists()
        if name not in _NEVER_STORED and "password" not in name
    }
    if sum(len(value) for given in values.values() for value in given) > _MOST_CHARACTERS:
        return None
    return {"url": request.get_full_path(), "values": values, "had_files": bool(request.FILES)}


def _cache_key(owner: int) -> str:
    return f"unsaved_entries_{owner}"


def expired_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW."""
    if _is_our_form(request) and (entries := _entries_of(request)) is not None:
        request.session[_IN_SESSION] = entries
        response = HttpResponseRedirect(request.get_full_path())
        response.status_code = 303
        return response
    return csrf_failure(request, reason)


def _is_our_form(request: HttpRequest) -> bool:
    # Another site could otherwise fill in a form for an officer, who might submit it unread.
    own = f"{request.scheme}://{request.get_host()}"
    return (
        request.user.is_authenticated
        and request.headers.get("Origin") == own
        and request.path_info.startswith(reverse("admin:index"))
    )


STARTED, SEEN = "signed_in_at", "seen_at"
_SEEN_EVERY_SECONDS = 60  # not on every page: the idle time is exact to a minute


def restart_idle_time(request: HttpRequest, *, at_once: bool = False) -> None:
    """Let settings.SESSION_COOKIE_AGE begin anew, by saving the session."""
    session, now = request.session, _now()
    if at_once or now - session.get(SEEN, 0) > _SEEN_EVERY_SECONDS:
        session.setdefault(STARTED, now)
        session[SEEN] = now


def seconds_left(request: HttpRequest) -> int:
    """How long the session lasts if nothing more is requested."""
    session, now = request.session, _now()
    idle = settings.SESSION_COOKIE_AGE - (now - session.get(SEEN, now))
    whole = settings.SESSION_LONGEST - _age(request)
    return max(0, int(min(idle, whole.total_seconds())))


def _age(request: HttpRequest) -> timedelta:
    now = _now()
    return timedelta(seconds=now - request.session.get(STARTED, now))


def _now() -> float:
    return datetime.now(UTC).timestamp()


def limit_sessions(get_response: Handler) -> Handler:
    """Signs out a session that is too old, and saves its form; or restarts its idle time."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.user.is_authenticated:
            _announce_idle_end(request)
        elif _age(request) > settings.SESSION_LONGEST:
            owner = request.user.pk
            logout(request)
            text = _("Your session has reached its maximum length. Sign in again.")
            messages.info(request, f"{text} {_save(request, owner)}".rstrip())
        else:
            restart_idle_time(request)
        return get_response(request)

    return middleware


def _announce_idle_end(request: HttpRequest) -> None:
    if not request.path_info.startswith(reverse("admin:index")):
        return
    owner = owner_of_ended_session(request)
    text = _("Your session has ended, because it was not used for {minutes} minutes.").format(
        minutes=settings.SESSION_COOKIE_AGE // 60
    )
    if message := f"{text if owner else ''} {_save(request, owner)}".strip():
        messages.info(request, message)


def _save(request: HttpRequest, owner: int | None) -> str:
    """Save the form that was sent, and what to tell its sender; empty if none was sent."""
    if request.method != "POST":
        return ""
    if owner is not None and (entries := _entries_of(request)) is not None:
        cache.set(_cache_key(owner), entries, _SECONDS)
        return _("Nothing was saved. After you sign in, the form shows what you entered.")
    return _("Nothing was saved. Sign in and enter it again.")


@require_safe
def stay_signed_in(request: HttpRequest) -> JsonResponse:
    """Restarts the idle time, for the button of the warning; how many seconds are left then."""
    if not request.user.is_authenticated:
        return JsonResponse({"seconds": 0})
    restart_idle_time(request, at_once=True)
    return JsonResponse({"seconds": seconds_left(request)})
