"""Programs as they run in production: those of docs/webhooks.md, and a deliverer that is killed."""

import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from identity.webhooks.event_types import EVENT_TYPES, TEST
from identity.webhooks.models import WebhookDelivery
from tests.servers.processes import (
    CHECKOUT,
    Process,
    free_port,
    listens,
    start_process,
    stop_process,
    until,
)
from tests.servers.service import Service, service_environment
from tests.support.databases import MigratedSqlite
from tests.support.moments import now
from tests.webhooks.endpoints import new_endpoint
from tests.webhooks.receiver import OK, receiving

GUIDE = (CHECKOUT / "docs" / "webhooks.md").read_text(encoding="utf-8")
(RECEIVER,) = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)


def test_it_lists_every_type_of_event() -> None:
    table = GUIDE.partition("| type | when |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+\.\w+)`", table)) == sorted([*EVENT_TYPES, TEST])


@pytest.mark.processes
def test_its_receiver_accepts_what_its_commands_send(
    migrated_sqlite: MigratedSqlite, tmp_path: Path
) -> None:
    port = free_port()
    migrated_sqlite.write_to(tmp_path / "identity.sqlite3")
    environment = service_environment(
        tmp_path, 0, SERVE="staff", WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8"
    )
    text = COMMANDS
    for name, place in {
        "https://portal.example.org": f"http://127.0.0.1:{port}",
        ".venv/bin/python manage.py": f"{sys.executable} {CHECKOUT / 'manage.py'}",
    }.items():
        assert name in text
        text = text.replace(name, place)
    register, others = text.split("\n", 1)

    def shell(lines: str) -> str:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    shell(register)
    program, log = tmp_path / "receiver.py", tmp_path / "receiver.log"
    assert "8443" in RECEIVER
    program.write_text(RECEIVER.replace("8443", str(port)), encoding="utf-8")
    receiver = start_process(
        [sys.executable, str(program)], log, lambda: listens(port), cwd=tmp_path
    )
    try:
        shown = shell(others)
    finally:
        stop_process(receiver, signal.SIGKILL)
    assert "1 delivered, 0 waiting" in shown
    assert "webhook.test \n" in log.read_text()


@contextmanager
def deliverer(environment: Any, log: Path) -> Iterator[Process]:
    command = [sys.executable, "manage.py", "deliver_webhooks"]
    process = start_process(command, log, lambda: True, env=environment)
    try:
        yield process
    finally:
        stop_process(process, signal.SIGKILL)


@pytest.mark.processes
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
