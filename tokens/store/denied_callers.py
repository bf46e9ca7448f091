"""Stores which callers a limit denied: after their logins, a second later (contract 1, Limits)."""

import logging

from django.db import DatabaseError, connection

from taxpayers.repeated import repeat
from taxpayers.shut_down import answered_within
from tokens.models import ThrottledCaller
from tokens.rate_limits.denied_callers import DeniedCallers

logger = logging.getLogger("tokens.throttled")
_EVERY_SECONDS = 1.0
_ANSWER_SECONDS = 1.5


def keep_stored(callers: DeniedCallers) -> None:
    """From now on a thread stores them."""

    def store_again() -> None:
        if store(callers):
            connection.close()  # hours may pass before the next one

    repeat(store_again, _EVERY_SECONDS, logger, "throttled callers not stored")


def store(callers: DeniedCallers) -> bool:
    """Stores those that wait; another process may have stored the same. False: there were none."""
    if not (denied := callers.take()):
        return False
    rows = [ThrottledCaller(**one._asdict()) for one in denied]
    try:
        with answered_within(_ANSWER_SECONDS):
            ThrottledCaller.objects.bulk_create(rows, ignore_conflicts=True)
    except DatabaseError:  # the metrics have counted them
        logger.warning("throttled callers not stored", exc_info=True)
    return True
