"""How long a staff session lasts: since its last request, and in all."""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.http import HttpRequest

_STARTED, _SEEN = "signed_in_at", "seen_at"
_SEEN_EVERY_SECONDS = 60  # not on every page: the idle time is exact to a minute


def is_over(request: HttpRequest) -> bool:
    """Whether the session is older than settings.SESSION_LONGEST."""
    return _age(request) > settings.SESSION_LONGEST


def restart_idle_time(request: HttpRequest, *, at_once: bool = False) -> None:
    """Let settings.SESSION_COOKIE_AGE begin anew, by saving the session."""
    session, now = request.session, _now()
    if at_once or now - session.get(_SEEN, 0) > _SEEN_EVERY_SECONDS:
        session.setdefault(_STARTED, now)
        session[_SEEN] = now


def seconds_left(request: HttpRequest) -> int:
    """How long the session lasts if nothing more is requested."""
    session, now = request.session, _now()
    idle = settings.SESSION_COOKIE_AGE - (now - session.get(_SEEN, now))
    whole = settings.SESSION_LONGEST - _age(request)
    return max(0, int(min(idle, whole.total_seconds())))


def _age(request: HttpRequest) -> timedelta:
    now = _now()
    return timedelta(seconds=now - request.session.get(_STARTED, now))


def _now() -> float:
    return datetime.now(UTC).timestamp()
