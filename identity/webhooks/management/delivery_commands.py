"""The commands about deliveries: to send them, to list what waits, and what every night needs."""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db import connections

from identity.webhooks.management.webhook_commands import webhook_data
from identity.webhooks.models import WebhookEndpoint
from identity.webhooks.publishing import publish_all_changes
from identity.webhooks.sending.delivering import Deliverer
from identity.webhooks.upkeep import announce_ends, delete_old, give_up_old, renew_encryption
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.services import Author
from taxpayers.services.permission_requests import expire_permission_requests

_PAUSE_SECONDS = 1.0  # how often it looks whether something is due
_OUTAGE_SECONDS = 5.0

logger = logging.getLogger("identity.webhooks")


class _Deliver(ServiceCommand):
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


class _List(ServiceCommand):
    help = "List the webhooks: what waits for each, what was given up, and how it answers."

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        rows = WebhookEndpoint.objects.order_by("pk")
        data = [{**webhook_data(row), **_waiting(row, at)} for row in rows]
        return Output({"webhooks": data}, "\n".join(map(_line, data)) or "There is no webhook.")


def _line(data: dict[str, Any]) -> str:
    state = "enabled" if data["is_active"] else "disabled"
    return (
        f"{data['id']}  {state}  {data['url']}: {data['delivered']} delivered,"
        f" {data['waiting']} waiting for up to {data['oldest_waiting_seconds']} seconds,"
        f" {data['failed']} given up; last attempt: {data['last_result'] or 'none'}"
    )


def _waiting(row: WebhookEndpoint, at: datetime) -> dict[str, Any]:
    states = {state: row.deliveries.filter(state=state) for state in ("pending", "failed")}
    oldest = states["pending"].order_by("created_at").first()
    latest = row.deliveries.exclude(last_attempt_at=None).order_by("-last_attempt_at").first()
    return {
        "waiting": states["pending"].count(),
        "oldest_waiting_seconds": int((at - oldest.created_at).total_seconds()) if oldest else 0,
        "failed": states["failed"].count(),
        "delivered": row.delivered,
        "last_delivered_at": row.last_delivered_at,
        "last_result": latest.last_result if latest else "",
        "paused_until": row.paused_until,
    }


class _Nightly(ServiceCommand):
    help = (
        "Record which requests for permissions have expired; announce to webhooks what ends in 30,"
        " 7 and 1 days; give up and delete old deliveries; encrypt the secrets of webhooks with the"
        " newest key. Safe to repeat."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        expired = expire_permission_requests(by=by, at=at)
        publish_all_changes(at)
        announced = announce_ends(at)
        given_up, deleted = give_up_old(at), delete_old(at)
        lost = ", ".join(map(str, renew_encryption()))
        return Output(
            {"expired": expired, "announced": announced, "given_up": given_up, "deleted": deleted},
            f"Requests expired: {expired}. Ends announced: {announced}. Deliveries given up:"
            f" {given_up}, deleted: {deleted}.",
            lost and f"A secret of {lost} cannot be decrypted: check KEY_ENCRYPTION_KEYS.",
        )


COMMANDS = {"deliver_webhooks": _Deliver, "list_webhooks": _List, "nightly_webhooks": _Nightly}
