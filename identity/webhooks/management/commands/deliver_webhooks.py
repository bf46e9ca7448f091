"""`deliver_webhooks`: sends events until it is stopped; several may run, on any machines."""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db import connections

from identity.webhooks.sending.delivering import Deliverer
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author

_PAUSE_SECONDS = 1.0  # how often it looks whether something is due
_OUTAGE_SECONDS = 5.0

logger = logging.getLogger("identity.webhooks")


class Command(ServiceCommand):
    help = (
        "Send events to the webhooks until SIGTERM; what is under way is finished then. Several may"
        " run at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--once", action="store_true", help="end as soon as nothing is due any more"
        )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        with contextlib.closing(Deliverer()) as deliverer:
            if options["once"]:
                while deliverer.step(_PAUSE_SECONDS):
                    pass
            else:
                with _until_stopped() as stopped:
                    _run(deliverer, stopped)
        return Output({}, "")


def _run(deliverer: Deliverer, stopped: threading.Event) -> None:
    while not stopped.is_set():
        try:
            if not deliverer.step(_PAUSE_SECONDS):
                stopped.wait(_PAUSE_SECONDS)
        except Exception:
            logger.exception("webhooks: trying again")
            connections.close_all()
            stopped.wait(_OUTAGE_SECONDS)


@contextlib.contextmanager
def _until_stopped() -> Iterator[threading.Event]:
    """Set by SIGTERM and by SIGINT."""
    stopped = threading.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    former = [signal.signal(number, lambda *_: stopped.set()) for number in signals]
    try:
        yield stopped
    finally:
        for number, handler in zip(signals, former, strict=True):
            signal.signal(number, handler)
