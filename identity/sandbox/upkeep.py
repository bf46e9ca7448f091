"""A thread of the server that keeps the secret ending tomorrow: true on every day without a job."""

import logging
import threading
import time

from django.db import connection
from django.utils import timezone

from identity.sandbox.registry import renew_ending_secret
from taxpayers.shut_down import answered_within

logger = logging.getLogger("identity.sandbox")

_LOOK_EVERY_SECONDS = 1800.0
_ANSWER_SECONDS = 10.0


def keep_sandbox_current() -> None:
    """From now on; of several processes one makes the change, and the others find it made."""
    threading.Thread(target=_renew_again, daemon=True).start()


def _renew_again() -> None:
    while True:
        renew_once()
        connection.close()  # it would be idle until the next time
        time.sleep(_LOOK_EVERY_SECONDS)


def renew_once() -> None:
    """Never raises: without a database the next time will do."""
    try:
        with answered_within(_ANSWER_SECONDS):
            renew_ending_secret(timezone.now())
    except Exception:
        logger.warning("the sandbox was not renewed", exc_info=True)
