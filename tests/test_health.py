"""Liveness and readiness, for load balancers: what fails is named, and nothing else shown."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import psycopg
import pytest
from django.core.management import call_command
from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.http import HttpResponse
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings

from identity import readiness
from identity.server import readiness as server_readiness
from identity.server.readiness import PublicStatus, Readiness
from identity.version import COMMIT, __version__
from taxpayers.async_sql import NoConnection, SentTooLate
from tests.support.answers import body_of, headers_of
from tests.support.outages import database_out_of_reach
from tokens.keys.signer import clear_key_ring_cache
from tokens.keys.store import read_key_ring
from tokens.operations import clock
from tokens.operations.recent_writes import fault_of_database, recent_writes
from tokens.status_lists import publication

JSON = {"Content-Type": "application/json", "Cache-Control": "no-store"}
NAMES = ("database", "clock", "migrations", "login_events", "signing_key", "logins")
CHECKS = dict.fromkeys(("status_lists", *NAMES), "ok")
NOT_CHECKED = dict.fromkeys(NAMES, "not checked")


@pytest.fixture(autouse=True)
def _fresh_process() -> None:
    readiness._all_migrated.cache_clear()
    recent_writes.__init__()  # type: ignore[misc]


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
@pytest.mark.parametrize(("seconds", "shown"), [(30, "30.0 s ahead of"), (-30, "30.0 s behind")])
def test_a_clock_that_is_off_is_named(seconds: int, shown: str) -> None:
    def wrong_clock() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=seconds)

    with patch.object(clock, "wall_clock", wrong_clock):
        assert_not_ready(
            clock=f"{shown} the database's: check NTP", **dict.fromkeys(NAMES[2:], "not checked")
        )


@pytest.mark.django_db
def test_a_database_out_of_reach_is_named_and_the_later_checks_are_not_run() -> None:
    with database_out_of_reach():
        assert_not_ready(**{**NOT_CHECKED, "database": "failed: see the log"})
    assert get("/health/ready").status_code == 200


@pytest.mark.django_db
def test_the_age_of_the_status_lists_is_told_beside_what_else_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists = publication.status_lists()
    lists.read()
    monkeypatch.setattr(lists, "is_kept_fresh", True)
    assert get("/health/ready").status_code == 200
    monkeypatch.setattr(lists, "_read_at", lists._read_at - 140)
    with database_out_of_reach():
        assert_not_ready(
            **{**NOT_CHECKED, "status_lists": "140 s old", "database": "failed: see the log"}
        )
        with monkeypatch.context() as patch:
            patch.setattr(lists, "_read_at", float("-inf"))  # a node that has just started
            assert "not read yet" in get("/health/ready").content.decode()
    families = text_string_to_metric_families(get("/metrics").content.decode())
    ages = [one.samples[0].value for one in families if one.name == "status_list_age_seconds"]
    assert 140 <= ages[0] < 200


def _sent(cause: type[psycopg.Error]) -> DatabaseError:
    error = DatabaseError("no answer")
    error.__cause__ = cause("no answer")
    return error


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (_sent(psycopg.errors.DiskFull), "DiskFull"),
        (_sent(psycopg.errors.ReadOnlySqlTransaction), "ReadOnlySqlTransaction"),
        (_sent(psycopg.errors.AdminShutdown), "AdminShutdown"),
        (NoConnection("gone"), "NoConnection"),
        (SentTooLate("busy"), None),
        (_sent(psycopg.errors.QueryCanceled), None),
        (_sent(psycopg.errors.LockNotAvailable), None),
    ],
    ids=["disk", "read-only", "shut down", "gone", "too late", "statement timeout", "locked"],
)
def test_what_clients_can_cause_is_no_fault_of_the_database(
    error: Exception, name: str | None
) -> None:
    """Or busy nodes would say that they are not ready, all at the same time."""
    assert fault_of_database(error) == name


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
            **dict.fromkeys(NAMES[3:], "not checked"),
        )
    finally:
        call_command("migrate", app, fake=True, verbosity=0)
    assert get("/health/ready").status_code == 200


@pytest.mark.django_db
@pytest.mark.postgresql  # SQLite has no partitions
def test_a_month_without_a_partition_is_named() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE login_events_{datetime.now(UTC):%Y_%m}")
    assert_not_ready(
        login_events="no partition for this month: run manage.py prune_logins",
        **dict.fromkeys(NAMES[4:], "not checked"),
    )


@pytest.mark.django_db
def test_a_signing_key_that_does_not_decrypt_is_named(settings: Settings) -> None:
    read_key_ring(datetime.now(UTC))
    settings.KEY_ENCRYPTION_KEYS = ["another-" + "x" * 40]
    clear_key_ring_cache()
    assert_not_ready(
        signing_key="no key can be decrypted: check KEY_ENCRYPTION_KEYS", logins="not checked"
    )


class Hanging:
    """A database that answers when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers, self.asked = threading.Event(), 0
        self.fault: Exception | None = None
        monkeypatch.setattr(server_readiness, "readiness", self)
        monkeypatch.setattr(server_readiness, "_DEADLINE_SECONDS", 0.2)

    def __call__(self, at: datetime) -> dict[str, str]:
        self.asked += 1
        self.answers.wait(20)
        if self.fault:
            raise self.fault
        return CHECKS


def test_a_database_that_hangs_is_named_in_time_and_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = Hanging(monkeypatch)

    async def work() -> None:
        ready = Readiness()
        late = {**NOT_CHECKED, "database": "no answer within 0.2 seconds"}
        many = await asyncio.gather(*(ready.checks() for _ in range(16)))
        assert (many, database.asked) == ([late] * 16, 1), "all wait for the same checks"
        assert await ready.checks() == late
        database.answers.set()
        await asyncio.sleep(0.1)
        assert await ready.checks() == CHECKS

    asyncio.run(work())


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_broke_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(server_readiness, "close_old_connections", lambda: closed.append(True))
    database = Hanging(monkeypatch)
    database.answers.set()
    database.fault = OperationalError("lost")

    async def work() -> None:
        ready = Readiness()
        assert await ready.checks() == {}
        database.fault = None
        assert await ready.checks() == CHECKS

    asyncio.run(work())
    assert closed == [True, True]


@pytest.mark.postgresql  # SQLite runs in this process
@pytest.mark.django_db(transaction=True)
def test_checks_that_get_no_answer_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_readiness, "_GIVE_UP_SECONDS", 0.2)

    def hang() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")

    with pytest.raises(OperationalError):
        asyncio.run(Readiness().in_thread(hang))


@pytest.mark.django_db
def test_the_public_may_ask_whether_the_service_is_ready_and_which_version_it_is() -> None:
    response = get("/health", accept="text/html")
    assert (response.status_code, headers_of(response)) == (200, JSON)
    build = {"version": __version__, "commit": COMMIT}
    ready = {"status": "ok", **build, "environment": "test"}
    assert body_of(response) == ready
    with database_out_of_reach():
        response = get("/health")
    assert response.status_code == 503
    assert body_of(response) == ready | {"status": "unavailable"}  # and nothing of what is not
    text = get("/metrics").content.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["identity_build_info"].samples[0].labels == build


class Checked:
    def __init__(self) -> None:
        self.asked, self.result = 0, "ok"

    async def checks(self) -> dict[str, str]:
        self.asked += 1
        return {"database": self.result}


def test_however_many_ask_the_checks_are_run_every_five_seconds() -> None:
    checked = Checked()
    status, at = PublicStatus(checked), [1000.0]  # type: ignore[arg-type]

    async def ask() -> int:
        with patch.object(asyncio.get_running_loop(), "time", lambda: at[0]):
            return (await status.answer()).status_code

    async def work() -> None:
        assert [await ask() for _ in range(10)] == [200] * 10
        checked.result = "failed: see the log"
        at[0] += 4.9
        assert (await ask(), checked.asked) == (200, 1)
        at[0] += 0.2
        assert (await ask(), checked.asked) == (503, 2)

    asyncio.run(work())
