"""How many passwords and codes may be tried, so that one person cannot lock out another.

Counted in Django's cache, which all processes and nodes share. A person who has signed in with this
browser before is counted only by it; anybody else by name and address, by address, and by name
(docs/decisions.md). A passkey cannot be guessed, so it is never counted.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from allauth.core.internal import ratelimit
from django.http import HttpRequest

from identity.staff.accounts.known_browsers import known_browser
from tokens.rate_limits.buckets import counted_address

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
    """A guess that was counted."""

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
    if browser := known_browser(request, name):
        yield "browser", f"{browser} {name}"
        return
    address = counted_address(request.META.get("REMOTE_ADDR"))  # as at the login
    yield "pair", f"{address} {name}"
    yield "address", address
    yield "name", name


def fold_name(username: str) -> str:
    """One spelling for all that a database takes for the same name."""
    return unicodedata.normalize("NFKC", username).upper().casefold()
