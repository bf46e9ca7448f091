"""Whether a token was ended early: the status lists of the identity service, without asking it
about the token (draft-ietf-oauth-status-list section 8.3).
"""

import re
import threading
from typing import Any

from einvoicing_tokens.access_token import AccessToken
from einvoicing_tokens.claims import LEEWAY_SECONDS, NOT_OURS
from einvoicing_tokens.errors import InvalidToken, unavailable
from einvoicing_tokens.issuer.cache import Cache, Fetched
from einvoicing_tokens.issuer.keys import Keys
from einvoicing_tokens.issuer.source import Source
from einvoicing_tokens.signatures import NotVerified, verified
from einvoicing_tokens.status.status_list import TYPE, VALID, StatusList, unpacked

ENDED = (
    "The token is no longer active: its client has ended it, or what it came from has changed."
    " Log in again; if the login is refused, its answer says why."
)
# A list that names no other time is fresh for so long, and never for longer than an hour.
_TTL_SECONDS, _MAX_TTL_SECONDS = 5.0, 3600.0
_PAUSE_SECONDS = 1.0
_MAX_LISTS = 64  # in memory; one has the tokens of about a million clients
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,63}")


class StatusLists:
    """The lists that tokens name, each fetched again when its `ttl` has passed.

    A list that cannot be fetched again is used until its `exp`, and at most for `most_seconds`.
    One that is older than the newest that was seen is never used: its node lost its database.
    """

    def __init__(self, issuer: str, keys: Keys, source: Source, most_seconds: float) -> None:
        self._issuer, self._keys, self._source = issuer, keys, source
        self._most_seconds = most_seconds
        # `iat` by the address of the list, and when it was seen first.
        self._newest: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self._caches: dict[str, Cache[StatusList]] = {}

    def check(self, token: AccessToken) -> None:
        """Raises InvalidToken if the token was ended, Unavailable if that cannot be known.

        A token without `status` cannot be ended early: the service signed it so.
        """
        if "status" not in token.claims:
            return
        index, uri = self._reference(token.claims["status"])
        try:
            status = self._cache(uri).get().status(index)
        except IndexError:
            raise InvalidToken(NOT_OURS) from None  # we give no such index
        if status != VALID:
            raise InvalidToken(ENDED)

    def _reference(self, claim: Any) -> tuple[int, str]:
        """Index and address. The address must be the issuer's own: no other is ever asked."""
        try:
            index, uri = claim["status_list"]["idx"], claim["status_list"]["uri"]
            prefix = f"{self._issuer}/status/"
            is_ours = uri.startswith(prefix) and _NAME.fullmatch(uri[len(prefix) :])
        except (LookupError, TypeError, AttributeError):
            raise InvalidToken(NOT_OURS) from None
        if not is_ours or type(index) is not int or index < 0:
            raise InvalidToken(NOT_OURS)
        return index, uri

    def caches(self) -> list[Cache[StatusList]]:
        """Of the lists that tokens have named."""
        return list(self._caches.values())

    def _cache(self, uri: str) -> Cache[StatusList]:
        with self._lock:
            cache = self._caches.get(uri)
            if cache is None:
                if len(self._caches) == _MAX_LISTS:
                    self._caches.pop(next(iter(self._caches)))  # the one that was met first
                cache = self._caches[uri] = Cache(
                    self._source,
                    lambda: uri,
                    f"application/{TYPE}",
                    self._read,
                    pause_seconds=_PAUSE_SECONDS,
                    most_seconds=self._most_seconds,
                )
            return cache

    def _read(self, body: bytes, uri: str, age: float) -> Fetched[StatusList]:
        encoded = body.decode("ascii", "replace")
        try:
            claims = verified(encoded, types=(TYPE,), find_key=self._keys.find).claims
            is_of_issuer = claims.get("iss", self._issuer) == self._issuer
            if claims["sub"] != uri or "iat" not in claims or not is_of_issuer:
                raise NotVerified("the list of another address")
            usable_seconds = claims["exp"] + LEEWAY_SECONDS - self._source.clock.wall() + age
            ttl_seconds = float(claims.get("ttl", _TTL_SECONDS))
            if usable_seconds <= age or not 0 < ttl_seconds <= _MAX_TTL_SECONDS:
                raise NotVerified("a list that has expired")
            status_list = unpacked(claims["status_list"])
            old_seconds = self._take_newer(uri, claims["iat"], age)
            return Fetched(status_list, ttl_seconds, usable_seconds, old_seconds)
        except (LookupError, TypeError, ValueError):
            raise unavailable(f"{uri} is no valid status list") from None

    def _take_newer(self, uri: str, issued_at: int, age: float) -> float:
        """How long ago this list was new, whatever the clocks say.

        Raises Unavailable if it is older than the newest.
        """
        now = self._source.clock.monotonic()
        newest, seen_at = self._newest.get(uri, (issued_at, now - age))
        if issued_at <= newest and uri in self._newest:
            self._source.http.reconnect()  # to a node that has its database
        if issued_at < newest:
            raise unavailable(f"{uri} is older than it was before")
        if issued_at > newest:
            seen_at = now
        self._newest[uri] = issued_at, seen_at
        return now - age - seen_at
