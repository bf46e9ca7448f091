"""A thread that fetches what will soon be too old, so that no request waits for the service."""

import logging
import threading
import time
import weakref
from collections.abc import Callable

from einvoicing_tokens.published import Published, Status

logger = logging.getLogger("einvoicing_tokens")

TURN_SECONDS = 0.5
_REPORT_SECONDS, _LOG_SECONDS = 5.0, 60.0


class LookAhead:
    """The thread of one verifier: it begins with the first token, and ends with its verifier."""

    def __init__(
        self,
        published: Published,
        on_status: Callable[[Status], None] | None,
    ) -> None:
        self._published, self._on_status = published, on_status
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._reported_at = self._logged_at = float("-inf")

    def ensure(self) -> None:
        """Starts the thread unless it runs; a forked process has none."""
        if self._thread is not None and self._thread.is_alive():
            return
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=_run, args=(weakref.ref(self),), name="einvoicing_tokens", daemon=True
                )
                self._thread.start()

    def turn(self, now: float) -> None:
        """Fetches what is due, and reports. `now`: seconds of a clock that only goes forward."""
        for cache in self._published.caches():
            cache.look_ahead()
        status = self._published.status()
        if self._on_status is not None and now - self._reported_at >= _REPORT_SECONDS:
            self._reported_at = now
            self._on_status(status)
        if status.error and now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            logger.warning(
                "%s Facts are %.0f s old and can be used for %.0f s.",
                status.error,
                status.age_seconds or 0.0,
                status.usable_seconds,
            )


def _run(reference: "weakref.ref[LookAhead]") -> None:
    while True:
        look_ahead = reference()
        if look_ahead is None:
            return
        try:
            look_ahead.turn(time.monotonic())
        except Exception:  # whatever it is, the next turn may succeed
            logger.exception("published facts could not be looked after")
        del look_ahead
        time.sleep(TURN_SECONDS)
