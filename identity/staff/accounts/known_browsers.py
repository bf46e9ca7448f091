"""Browsers in which a person has signed in: others cannot lock them out by guessing.

A signed cookie says who; it opens nothing. ("Device cookies", OWASP.)
"""

import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.utils.crypto import salted_hmac

_SALT = "identity.staff.accounts.known_browsers"
MAX_NAMES = 8  # of people who share a browser; the oldest is forgotten


def known_browser(request: HttpRequest, name: str) -> str | None:
    """The id of the browser if this person has signed in with it; otherwise None."""
    browser, names = _read(request)
    return browser if _mark(name) in names else None


def remember_browser(request: HttpRequest, response: HttpResponseBase, name: str) -> None:
    """Sets the cookie: this person has just signed in, with all steps."""
    browser, names = _read(request)
    mark = _mark(name)
    names = [*(other for other in names if other != mark), mark][-MAX_NAMES:]
    response.set_cookie(
        settings.BROWSER_COOKIE_NAME,
        signing.dumps([browser or secrets.token_urlsafe(12), *names], salt=_SALT),
        max_age=settings.BROWSER_COOKIE_AGE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def _read(request: HttpRequest) -> tuple[str, list[str]]:
    cookie = request.COOKIES.get(settings.BROWSER_COOKIE_NAME, "")
    try:
        browser, *names = signing.loads(cookie, salt=_SALT, max_age=settings.BROWSER_COOKIE_AGE)
    except signing.BadSignature:
        return "", []
    return browser, names


def _mark(name: str) -> str:
    # The cookie stays on the computer: it must not show who works there.
    return salted_hmac(_SALT, name, algorithm="sha256").hexdigest()[:24]
