"""A value of the identity service that is fetched when it is needed, and not more often.

One thread fetches at a time, also for all others that wait. While the service cannot be reached,
the last value is used until it ends; then there is none, and requests are refused.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from einvoicing_tokens.errors import Unavailable, unavailable
from einvoicing_tokens.issuer.clock import Clock

logger = logging.getLogger("einvoicing_tokens")

Value = TypeVar("Value")

# So long a value that was fresh a moment ago is used while another thread fetches the next one.
_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Fetched(Generic[Value]):
    """A value, and for how many seconds after it was asked for it is fresh, and usable if there is
    no newer one.
    """

    value: Value
    fresh_seconds: float
    usable_seconds: float


class Cache(Generic[Value]):
    """The value that `fetch` returned last; `fetch` raises Unavailable if there is none to be had.

    It is not called again within `pause_seconds` of the end of its last call, unless that value is
    no longer fresh. `name` is for the log.
    """

    def __init__(
        self, name: str, fetch: Callable[[], Fetched[Value]], *, pause_seconds: float, clock: Clock
    ) -> None:
        self._name, self._fetch, self._clock = name, fetch, clock
        self._pause_seconds = pause_seconds
        self._lock = threading.Lock()
        self._last: _Stored[Value] | None = None
        self._failure: Unavailable | None = None  # of the last fetch
        self._paused_until = clock.monotonic()

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
                raise self._failure or unavailable(f"{self._name} cannot be read")
            return self._last.value

    def _is_good_enough(self, last: "_Stored[Value]", now: float) -> bool:
        """Whether to use it while another thread fetches, instead of waiting for that."""
        is_recent = now < last.fresh_until + _GRACE_SECONDS
        return now < last.usable_until and (is_recent or self._failure is not None)

    def _current(self) -> Value:
        """With the lock: another thread may have fetched it, or failed, while this one waited."""
        now = self._clock.monotonic()
        is_fresh = self._last is not None and now < self._last.fresh_until
        if not is_fresh and (self._failure is None or now >= self._paused_until):
            self._renew()
        last = self._last
        if last is None or self._clock.monotonic() >= last.usable_until:
            raise self._failure or unavailable(f"{self._name} cannot be read")
        return last.value

    def _renew(self) -> None:
        began = self._clock.monotonic()
        try:
            fetched = self._fetch()
        except Exception as error:  # noqa: BLE001 - whatever an answer has, the last value stays
            failure = (
                error
                if isinstance(error, Unavailable)
                else unavailable(f"{self._name} cannot be read: {type(error).__name__}")
            )
            if self._failure is None:  # once for each outage
                logger.warning("%s: %s", self._name, failure)
            self._failure = failure
        else:
            if self._failure is not None:
                logger.warning("%s: available again", self._name)
            self._failure = None
            usable_until = began + fetched.usable_seconds
            fresh_until = min(began + fetched.fresh_seconds, usable_until)
            self._last = _Stored(fetched.value, fresh_until, usable_until)
        finally:
            self._paused_until = self._clock.monotonic() + self._pause_seconds


@dataclass(frozen=True, slots=True)
class _Stored(Generic[Value]):
    value: Value
    fresh_until: float
    usable_until: float
