"""`deliver_webhooks` as it runs in production: killed in the middle of a delivery, and stopped."""

import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.webhooks.models import WebhookDelivery
from tests.servers.processes import Process, start_process, stop_process, until
from tests.servers.service import Service, service_environment
from tests.support.moments import now
from tests.webhooks.endpoints import new_endpoint
from tests.webhooks.receiver import OK, receiving

pytestmark = pytest.mark.processes


@contextmanager
def deliverer(environment: Any, log: Path) -> Iterator[Process]:
    """The command as systemd starts it."""
    command = [sys.executable, "manage.py", "deliver_webhooks"]
    process = start_process(command, log, lambda: True, env=environment)
    try:
        yield process
    finally:
        stop_process(process, signal.SIGKILL)


def test_a_deliverer_that_is_killed_sends_again_with_the_same_id_and_one_that_is_stopped_does_not(
    postgres_url: str, tmp_path: Path
) -> None:
    environment = service_environment(
        tmp_path,
        0,
        DATABASE_URL=postgres_url,
        SERVE="staff",
        WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8",
    )
    node = Service("", environment, None, tmp_path)  # type: ignore[arg-type]  # only its database
    go_on = threading.Event()

    def answer_later(line: socket.socket) -> None:
        go_on.wait(30)
        line.sendall(OK)

    with receiving(lambda line: line.recv(1), answer_later) as receiver:  # type: ignore[arg-type]
        node.run(lambda: new_endpoint(receiver.url))
        first = node.manage("send_test_webhook", "1")["webhook_id"]
        with deliverer(environment, tmp_path / "log") as killed:
            until(lambda: receiver.received, 60)  # it has arrived, and nothing of that is stored
            stop_process(killed, signal.SIGKILL)
        leased = node.run(WebhookDelivery.objects.get)
        assert (leased.state, leased.attempts) == ("pending", 0)
        assert leased.leased_until is not None
        assert leased.leased_until > now()
        # As if the time of the lease had passed.
        node.run(lambda: WebhookDelivery.objects.update(leased_until=now() - timedelta(seconds=1)))
        with deliverer(environment, tmp_path / "log") as stopped:
            until(lambda: len(receiver.received) >= 2, 60)
            stopped.send_signal(signal.SIGTERM)
            go_on.set()
            assert stopped.wait(30) == 0
    assert receiver.ids == [first, first]
    done = node.run(WebhookDelivery.objects.get)
    assert (done.state, done.attempts) == ("delivered", 1)
