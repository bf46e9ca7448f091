"""The limits of a staff session: its idle time and its total length."""

from datetime import UTC, datetime

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from identity.middleware import Handler

_STARTED, _SEEN = "signed_in_at", "seen_at"
_SEEN_EVERY_SECONDS = 60  # not on every page: the idle time is exact to a minute


def limit_sessions(get_response: Handler) -> Handler:
    """Signs out a session that is older than settings.SESSION_LONGEST.

    Otherwise restarts its idle time (settings.SESSION_COOKIE_AGE) by saving it.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if request.user.is_authenticated:
            session, now = request.session, datetime.now(UTC).timestamp()
            if now - session.get(_STARTED, now) > settings.SESSION_LONGEST.total_seconds():
                logout(request)
                messages.info(
                    request, _("Your session has reached its maximum length. Sign in again.")
                )
            elif now - session.get(_SEEN, 0) > _SEEN_EVERY_SECONDS:
                session.setdefault(_STARTED, now)
                session[_SEEN] = now
        return get_response(request)

    return middleware
