"""Work that a thread of this process does again and again, as long as the process lives."""

import logging
import threading
import time
from collections.abc import Callable

from django.db import connection


def repeat(
    work: Callable[[], object], seconds: float, logger: logging.Logger, failed: str
) -> threading.Event:
    """Repeats it from now on, with so many seconds between. The event: it was tried once."""
    has_tried = threading.Event()

    def again() -> None:
        is_well = True
        while True:
            is_well = attempt(work, logger if is_well else None, failed)
            has_tried.set()
            time.sleep(seconds)

    threading.Thread(target=again, daemon=True).start()
    return has_tried


def attempt(work: Callable[[], object], logger: logging.Logger | None, failed: str) -> bool:
    """Whether it was done; if not, the next attempt has another connection."""
    try:
        work()
    except Exception:
        if logger:
            logger.warning(failed, exc_info=True)
        connection.close()  # no request ends here, so Django does not replace a broken one
        return False
    return True
