"""Liveness and readiness, for load balancers: what fails is named, and nothing else shown."""

import asyncio
import socket
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx
import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from identity import health
from identity.server.readiness import PublicStatus
from tests.conftest import StartService
from tests.servers.postgres import Postgres
from tests.servers.processes import CHECKOUT, children, suspended
from tests.servers.service import Service
from tests.support.answers import body_of, headers_of
from tests.support.outages import database_out_of_reach
from tokens.keys.signer import clear_key_ring_cache
from tokens.keys.store import read_key_ring
from tokens.operations import clock

JSON = {"Content-Type": "application/json", "Cache-Control": "no-store"}
CHECKS = dict.fromkeys(["database", "clock", "migrations", "login_events", "signing_key"], "ok")
NOT_CHECKED = dict.fromkeys(CHECKS, "not checked")


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    health._all_migrated.cache_clear()


def get(path: str, method: str = "GET", **headers: str) -> HttpResponse:
    client = Client(raise_request_exception=False)
    return client.generic(method, path, headers=headers)  # type: ignore[return-value]


def assert_not_ready(**failing: str) -> None:
    response = get("/health/ready", accept="text/html")
    assert (response.status_code, headers_of(response)) == (503, JSON)
    assert body_of(response) == {"status": "unavailable", "checks": {**CHECKS, **failing}}


def test_a_process_is_live_even_without_its_database() -> None:
    response = get("/health/live", accept="text/html", host="10.0.0.1")
    assert (response.status_code, headers_of(response)) == (200, JSON)
    assert body_of(response) == {"status": "ok"}


@pytest.mark.django_db
def test_a_ready_process_has_passed_every_check() -> None:
    response = get("/health/ready", accept="text/html", host="10.0.0.1")
    assert (response.status_code, headers_of(response)) == (200, JSON)
    assert body_of(response) == {"status": "ok", "checks": CHECKS}


@pytest.mark.postgresql  # SQLite runs in this process and has no other clock
@pytest.mark.django_db
@pytest.mark.parametrize(("seconds", "shown"), [(-30, "+30.0 s"), (30, "-30.0 s")])
def test_a_clock_that_is_off_is_named(seconds: int, shown: str) -> None:
    def wrong_clock() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=seconds)

    with patch.object(clock, "wall_clock", wrong_clock):
        assert_not_ready(
            clock=f"{shown} off the database's: check NTP",
            **dict.fromkeys(("migrations", "login_events", "signing_key"), "not checked"),
        )


@pytest.mark.django_db
def test_a_database_out_of_reach_is_named_and_the_later_checks_are_not_run() -> None:
    with database_out_of_reach():
        assert_not_ready(**{**NOT_CHECKED, "database": "failed: see the log"})
    assert get("/health/ready").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_was_not_applied_is_named() -> None:
    graph = MigrationLoader(connection).graph
    # One on which no other depends, also not one of another app.
    app, newest = next(node for node in graph.leaf_nodes() if not graph.node_map[node].children)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = %s AND name = %s", [app, newest])
    try:
        assert_not_ready(
            migrations="not all applied: run manage.py migrate",
            login_events="not checked",
            signing_key="not checked",
        )
    finally:
        call_command("migrate", app, fake=True, verbosity=0)
    assert get("/health/ready").status_code == 200


@pytest.mark.django_db
def test_migrations_are_read_until_they_are_applied_and_then_no_more() -> None:
    def reads_migrations() -> bool:
        seen: list[str] = []

        def record(execute: Any, sql: str, *arguments: Any) -> Any:
            seen.append(sql)
            return execute(sql, *arguments)

        with connection.execute_wrapper(record):
            assert get("/health/ready").status_code == 200
        return any("django_migrations" in sql for sql in seen)

    assert reads_migrations()
    assert not reads_migrations()


@pytest.mark.django_db
@pytest.mark.postgresql  # SQLite has no partitions
def test_a_month_without_a_partition_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE login_events_{datetime.now(UTC):%Y_%m}")
    assert_not_ready(
        login_events="no partition for this month: run manage.py prune_logins",
        signing_key="not checked",
    )


@pytest.mark.django_db
def test_a_signing_key_that_does_not_decrypt_is_named(settings: Settings) -> None:
    read_key_ring(datetime.now(UTC))
    settings.KEY_ENCRYPTION_KEYS = ["another-" + "x" * 40]
    clear_key_ring_cache()
    assert_not_ready(signing_key="no key can be decrypted: check KEY_ENCRYPTION_KEYS")


@pytest.mark.processes
def test_a_database_that_hangs_is_named_within_two_seconds(
    service: StartService, postgres: Postgres, postgres_url: str
) -> None:
    node = service(postgres_url)
    with suspended(*children(postgres.process.pid), postgres.process.pid):
        for _ in range(2):
            began = time.monotonic()
            answer = httpx.get(f"{node.url}/health/ready", timeout=5)
            assert time.monotonic() - began < 2
            assert answer.status_code == 503
            database = answer.json()["checks"]["database"]
            assert database in ("no answer within 1.5 seconds", "failed: see the log")
        with ThreadPoolExecutor(8) as clients:
            list(clients.map(lambda _: httpx.get(f"{node.url}/health/ready"), range(16)))
        threads = [Path(f"/proc/{process}/task") for process in children(node.pid)]
        # The loop, the two that read signing keys and wait for them, those of the status lists and
        # of readiness, and the deadlines of what asks the database there.
        assert all(len(list(folder.iterdir())) <= 8 for folder in threads)
        assert httpx.get(f"{node.url}/health/live", timeout=1).status_code == 200
    for _ in range(4):  # both processes
        assert httpx.get(f"{node.url}/health/ready", timeout=5).status_code == 200


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/metrics"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS"])
def test_any_other_method_is_answered_in_json(path: str, method: str) -> None:
    response = get(path, method)
    assert response.status_code == 405
    assert headers_of(response) == {**JSON, "Allow": "GET, HEAD"}
    assert body_of(response)["error"] == "invalid_request"


@pytest.mark.parametrize(
    "path",
    [
        *("/health", "/health/ready", "/metrics", "/api/v1/me", "/connect/token", "/nothing"),
        *("/admin/", "/", "/errors/no_permission"),
    ],
)
def test_head_has_no_body_that_could_be_read_as_the_next_answer(node: Service, path: str) -> None:
    host, port = urlsplit(node.url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        for method in ("HEAD", "GET"):
            connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = connection.recv(65536)
            while b"\r\n\r\n" not in answer:
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 ")
            assert method == "GET" or answer.endswith(b"\r\n\r\n")


# --- For everybody --------------------------------------------------------------------------------


@pytest.mark.django_db
def test_everybody_may_ask_whether_the_service_is_ready_and_which_version_it_is() -> None:
    response = get("/health", accept="text/html")
    assert (response.status_code, headers_of(response)) == (200, JSON)
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ready = {"status": "ok", "version": project["version"], "environment": "test"}
    assert body_of(response) == ready
    with database_out_of_reach():
        response = get("/health")
    assert response.status_code == 503
    assert body_of(response) == ready | {"status": "unavailable"}  # and nothing of what is not


class Checked:
    """Readiness that says what it is told, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked, self.result = 0, "ok"

    async def checks(self) -> dict[str, str]:
        self.asked += 1
        return {"database": self.result}


def test_however_many_ask_the_checks_are_run_every_five_seconds() -> None:
    checked = Checked()
    status, at = PublicStatus(checked), [1000.0]  # type: ignore[arg-type]

    async def ask() -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        with patch.object(asyncio.get_running_loop(), "time", lambda: at[0]):
            await status({}, None, send)
        return int(sent[0]["status"])

    async def work() -> None:
        assert [await ask() for _ in range(10)] == [200] * 10
        checked.result = "failed: see the log"
        at[0] += 4.9
        assert (await ask(), checked.asked) == (200, 1)
        at[0] += 0.2
        assert (await ask(), checked.asked) == (503, 2)

    asyncio.run(work())
