"""An answer of the identity service that is fetched when it is needed, and not more often.

One thread fetches at a time, also for all others that wait. While the service cannot be reached,
the last answer is used until it ends; then there is none, and requests are refused.
"""

import logging
import math
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from einvoicing_tokens.errors import Unavailable, unavailable
from einvoicing_tokens.issuer.source import Source

logger = logging.getLogger("einvoicing_tokens")

Value = TypeVar("Value")

# So long a value that was fresh a moment ago is used while another thread fetches the next one.
_GRACE_SECONDS = 2.0
# So long before its end a thread fetches the next one.
_AHEAD_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Fetched(Generic[Value]):
    """A value, and for how many seconds after it was asked for it is fresh, and usable if there is
    no newer one. `old_seconds`: how old it was then.
    """

    value: Value
    fresh_seconds: float
    usable_seconds: float
    old_seconds: float = 0.0


class Cache(Generic[Value]):
    """What `read` made of the answer of `url` last; both raise Unavailable if that cannot be had.

    `read` gets the body, the address and how many seconds ago it was fetched. It is not fetched
    again within `pause_seconds` of the last time, unless that value is no longer fresh, and it is
    used for `most_seconds`. `accept` is the wanted media type.
    """

    def __init__(
        self,
        source: Source,
        url: Callable[[], str],
        accept: str,
        read: Callable[[bytes, str, float], Fetched[Value]],
        *,
        pause_seconds: float,
        most_seconds: float = math.inf,
    ) -> None:
        self._source, self._url, self._accept, self._read = source, url, accept, read
        self._clock = source.clock
        self._pause_seconds, self._most_seconds = pause_seconds, most_seconds
        self._lock = threading.Lock()
        self._last: _Stored[Value] | None = None
        self._failure: Unavailable | None = None  # of the last fetch
        self._paused_until = self._clock.monotonic()
        self._is_looked_ahead = False
        _caches.add(self)

    def get(self) -> Value:
        """A value that is fresh, or usable while no newer one is to be had. Raises Unavailable."""
        last, now = self._last, self._clock.monotonic()
        if last is not None and now < last.fresh_until:
            return last.value
        if last is not None and self._is_good_enough(last, now):
            if not self._lock.acquire(blocking=False):
                return last.value
        else:
            self._lock.acquire()
        try:
            return self._current()
        finally:
            self._lock.release()

    def newer(self) -> Value:
        """The value fetched again, unless that was done or tried within the pause.

        Raises Unavailable if the service could not answer.
        """
        before = self._last
        with self._lock:
            is_paused = self._clock.monotonic() < self._paused_until
            if not is_paused and self._last is before:
                self._renew()
            if self._last is None or self._failure is not None:
                raise self._failure or unavailable("the identity service cannot be reached")
            return self._last.value

    def unlock(self) -> None:
        """After a fork: the thread that holds the lock is not in this process."""
        self._lock = threading.Lock()

    def look_ahead(self) -> None:
        """Fetches it if it was needed before and will soon not be fresh; for a thread of ours.

        From then on no request waits while there is a value that can be used.
        """
        last, now = self._last, self._clock.monotonic()
        if last is None:
            return
        self._is_looked_ahead = True
        if now >= max(last.fresh_until - _AHEAD_SECONDS, self._paused_until):
            with self._lock:
                self._renew()

    def facts(self) -> "Facts | None":
        """How old the value is; None without one."""
        last, now = self._last, self._clock.monotonic()
        if last is None:
            return None
        error = str(self._failure) if self._failure else ""
        return Facts(now - last.made, max(last.usable_until - now, 0.0), error)

    def _is_good_enough(self, last: "_Stored[Value]", now: float) -> bool:
        """Whether to use it while another thread fetches, instead of waiting for that."""
        is_recent = now < last.fresh_until + _GRACE_SECONDS
        return now < last.usable_until and (is_recent or self._failure is not None)

    def _current(self) -> Value:
        """With the lock: another thread may have fetched it, or failed, while this one waited."""
        now = self._clock.monotonic()
        last = self._last
        # By our thread, unless that did not run for a while: a process that was stopped.
        may_wait = not (
            self._is_looked_ahead
            and last is not None
            and now < min(last.usable_until, max(last.fresh_until, self._paused_until) + 5)
        )
        is_fresh = last is not None and now < last.fresh_until
        if not is_fresh and may_wait and (self._failure is None or now >= self._paused_until):
            self._renew()
        last = self._last
        if last is None or self._clock.monotonic() >= last.usable_until:
            raise self._failure or unavailable("the identity service cannot be reached")
        return last.value

    def _renew(self) -> None:
        began = self._clock.monotonic()
        try:
            url = self._url()
            body = self._source.http.get(url, self._accept)
            fetched = self._read(body, url, 0.0)
        except Exception as error:  # noqa: BLE001 - whatever an answer has, the last value stays
            failure = (
                error
                if isinstance(error, Unavailable)
                else unavailable(f"an answer cannot be read: {type(error).__name__}")
            )
            if self._failure is None:  # once for each outage
                logger.warning("%s", failure)
            self._failure = failure
            if self._last is None:
                self._restore(began)
        else:
            if self._failure is not None:
                logger.warning("%s: available again", url)
            self._failure = None
            self._store(fetched, began)
            self._source.save(url, body)
        finally:
            self._paused_until = self._clock.monotonic() + self._pause_seconds

    def _restore(self, now: float) -> None:
        """What an earlier process of this API has stored, if it can still be used."""
        try:
            url = self._url()
            stored = self._source.load(url)
            if stored is not None:
                body, age = stored
                self._store(self._read(body, url, age), now - age)
        except Exception as error:  # noqa: BLE001 - whatever the file has
            logger.warning("a stored answer cannot be used: %s", error)

    def _store(self, fetched: Fetched[Value], began: float) -> None:
        made = began - fetched.old_seconds
        usable_until = min(began + fetched.usable_seconds, made + self._most_seconds)
        fresh_until = min(began + fetched.fresh_seconds, usable_until)
        self._last = _Stored(fetched.value, made, fresh_until, usable_until)


_caches: "weakref.WeakSet[Cache[Any]]" = weakref.WeakSet()


def _unlock_all() -> None:
    for cache in _caches:
        cache.unlock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_unlock_all)


@dataclass(frozen=True, slots=True)
class Facts:
    """How many seconds old a value is, how long it can be used, and the last error."""

    age: float
    usable: float
    error: str


@dataclass(frozen=True, slots=True)
class _Stored(Generic[Value]):
    value: Value
    made: float
    fresh_until: float
    usable_until: float
