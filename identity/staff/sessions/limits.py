"""How long a staff session lasts; a page warns of its end, so that nothing entered is lost."""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from identity.middleware import Handler
from identity.staff.sessions.unsaved_entries import owner_of_ended_session, save_for_sign_in

STARTED, SEEN = "signed_in_at", "seen_at"
_SEEN_EVERY_SECONDS = 60  # not on every page: the idle time is exact to a minute


def is_over(request: HttpRequest) -> bool:
    """Whether the session is older than settings.SESSION_LONGEST."""
    return _age(request) > settings.SESSION_LONGEST


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
    """Signs out a session that is older than settings.SESSION_LONGEST.

    Otherwise restarts its idle time. A form that was sent too late is saved for the next sign-in.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.user.is_authenticated:
            _announce_idle_end(request)
        elif is_over(request):
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
    if owner is not None and save_for_sign_in(request, owner):
        return _("Nothing was saved. After you sign in, the form shows what you entered.")
    return _("Nothing was saved. Sign in and enter it again.")


@require_safe
def stay_signed_in(request: HttpRequest) -> JsonResponse:
    """Restarts the idle time, for the button of the warning; how many seconds are left then."""
    if not request.user.is_authenticated:
        return JsonResponse({"seconds": 0})
    restart_idle_time(request, at_once=True)
    return JsonResponse({"seconds": seconds_left(request)})
