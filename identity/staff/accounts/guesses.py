"""How many passwords and codes may be tried, so that one person cannot lock out another.

Counted in Django's cache, which all processes and nodes share. A person who has signed in with this
browser before is counted only by it; any other caller by name and address, by address, and by name
(docs/decisions.md). A passkey cannot be guessed, so it is never counted.
"""

import secrets
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from allauth.core.internal import ratelimit
from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.utils.crypto import salted_hmac

from tokens.rate_limits.backoff import counted_address

_SALT = "identity.staff.accounts.known_browsers"  # in cookies of 180 days: never changed
MAX_NAMES = 8  # of people who share a browser; the oldest is forgotten


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


Factor = Literal["password", "code"]

LIMITS = {
    "password_by_browser": "5/15m/key",
    "password_by_pair": "5/15m/key",
    "password_by_address": "20/15m/key",
    "password_by_name": "50/15m/key",
    # Who is asked for a code has given the right password, so there is less to wait for: a
    # stranger who tries all year finds one of a million codes with a chance of 8 %.
    "code_by_browser": "5/15m/key",
    "code_by_pair": "5/15m/key",
    "code_by_address": "20/15m/key",
    "code_by_name": "10/60m/key",
}


@dataclass(frozen=True, slots=True)
class Guess:
    _counts: list[ratelimit.RateLimitUsage]

    def give_back(self) -> None:
        """It was right: it does not count."""
        for count in self._counts:
            count.rollback()


def count_guess(request: HttpRequest, kind: Factor, username: str) -> Guess | None:
    """Count a guess before it is checked. None: it is one too many, and must not be checked."""
    counts = []
    for limit, key in _keys(request, fold_name(username)):
        action = f"{kind}_by_{limit}"
        count = ratelimit.consume(request, app="identity", action=action, config=LIMITS, key=key)
        if count is None:
            return None
        counts.append(count)
    return Guess(counts)


def _keys(request: HttpRequest, name: str) -> Iterator[tuple[str, str]]:
    # In this order: who has no guess left for this pair uses up none of the name.
    browser, known = _read(request)
    if _mark(name) in known:  # this person has signed in with it
        yield "browser", f"{browser} {name}"
        return
    address = counted_address(request.META.get("REMOTE_ADDR"))  # as at the login
    yield "pair", f"{address} {name}"
    yield "address", address
    yield "name", name


def fold_name(username: str) -> str:
    """One spelling for all that a database takes for the same name."""
    return unicodedata.normalize("NFKC", username).upper().casefold()
