"""The service through a real PgBouncer in transaction mode, with `deploy/pgbouncer.ini` itself.

PgBouncer comes from the operating system (Debian: `apt install pgbouncer`).
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured

from identity.databases import database
from tests.conftest import StartService
from tests.live.test_live_service import logins, new_client, recorded
from tests.servers.pgbouncer import Pooler, start_pooler
from tests.servers.postgres import Postgres
from tests.servers.processes import children, stopping, suspended
from tests.servers.service import Service
from tests.support.erp import PATH, Erp
from tests.support.over_http import new_boss, sign_in
from tokens.models import LoginEvent

SESSIONS = 2  # of PostgreSQL, for all threads of two nodes


@pytest.fixture
def pooler(postgres_url: str) -> Iterator[Pooler]:
    started = start_pooler(postgres_url, SESSIONS)
    with stopping(started):
        yield started


def prepared_statements(pooler: Pooler) -> int:
    """How many PostgreSQL keeps in the sessions of the pool."""
    with psycopg.connect(pooler.plain_url, prepare_threshold=None, autocommit=True) as connection:
        found = [
            connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            for _ in range(10)
        ]
    return max(int(row[0]) for row in found if row)


def test_limits_and_record_are_exact_through_a_pooler(
    service: StartService, pooler: Pooler
) -> None:
    nodes = [service(pooler.url), service(pooler.url)]
    erp = new_client(nodes[0], "--logins-per-minute", "20")
    assert logins(nodes, erp, 60) == {200: 20, 429: 40}
    assert recorded(nodes[0], erp) == 20
    assert logins(nodes, Erp(erp.client_id, "cs_test_" + "x" * 40), 4) == {400: 4}
    assert prepared_statements(pooler) == 0
    nodes[1].manage("prune_logins", "--older-than", "400d")


def test_staff_work_through_a_pooler(service: StartService, pooler: Pooler) -> None:
    node = service(pooler.url)
    erp = new_client(node)
    assert logins([node], erp, 3) == {200: 3}
    with httpx.Client(base_url=node.url, timeout=30) as browser:
        assert sign_in(browser, node.url, new_boss(node)).headers["Location"] == "/admin/"
        for path in ("", "taxpayers/systemuser/", "tokens/loginevent/", "taxpayers/change/"):
            assert browser.get(f"/admin/{path}").status_code == 200, path
        assert erp.client_id in browser.get("/admin/taxpayers/systemuser/").text


def test_a_pooler_that_restarts_costs_no_login(service: StartService, pooler: Pooler) -> None:
    node = service(pooler.url)
    erp = new_client(node, "--logins-per-minute", "0")
    assert logins([node], erp, 24) == {200: 24}  # every thread has a connection by now
    pooler.restart()
    assert logins([node], erp, 24) == {200: 24}
    node.manage("block_system_user", erp.client_id, "--reason", "test")
    assert logins([node], erp, 8) == {400: 8}


def test_a_database_lost_behind_the_pooler_is_a_503_in_time(
    service: StartService, pooler: Pooler, postgres: Postgres
) -> None:
    node = service(pooler.url)
    erp = new_client(node)
    with psycopg.connect(pooler.plain_url) as connection:
        row = connection.execute("SELECT current_database()").fetchone()
    assert row
    postgres.execute(f'ALTER DATABASE "{row[0]}" ALLOW_CONNECTIONS false')
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{row[0]}'"  # noqa: S608 - the name of our own database
    )
    started = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        answers = list(
            threads.map(
                lambda _: httpx.post(f"{node.url}{PATH}", data=erp.form, timeout=30), range(4)
            )
        )
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.json()["error"] for answer in answers} == {"temporarily_unavailable"}
    assert time.monotonic() - started < 25
    postgres.execute(f'ALTER DATABASE "{row[0]}" ALLOW_CONNECTIONS true')
    deadline = time.monotonic() + 15
    while logins([node], erp, 1) != {200: 1}:  # the pooler itself tries again every second
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert logins([node], erp, 4) == {200: 4}


def issued(node: Service, erp: Erp) -> int:
    return node.run(LoginEvent.objects.filter(client_id=erp.client_id, reason="").count)


def test_a_database_that_hangs_behind_the_pooler_is_a_503_in_time_and_stores_nothing_later(
    service: StartService, postgres: Postgres, postgres_url: str
) -> None:
    pooler = start_pooler(postgres_url, 8, "query_timeout = 1.1")
    with stopping(pooler):
        node = service(pooler.url)
        erp = new_client(node, "--logins-per-minute", "0")
        assert logins([node], erp, 8) == {200: 8}
        with suspended(*children(postgres.process.pid), postgres.process.pid):
            began = time.monotonic()
            assert logins([node], erp, 8) == {503: 8}
            assert time.monotonic() - began < 2.5
            time.sleep(max(0.0, 3 - (time.monotonic() - began)))
        deadline = time.monotonic() + 15
        while logins([node], erp, 1) != {200: 1}:
            assert time.monotonic() < deadline
        received = 8 + 1
        assert issued(node, erp) == received


@pytest.mark.parametrize(
    ("role", "lines", "stored"),
    [
        ("", [], 1),
        ("", ["query_timeout = 1.1"], 1),
        ("SET statement_timeout = '1s'", [], 0),
    ],
    ids=["as it is", "query_timeout", "statement_timeout"],
)
def test_what_gave_up_is_stored_unless_the_role_has_a_deadline(
    service: StartService, postgres_url: str, role: str, lines: list[str], stored: int
) -> None:
    """docs/scaling.md, PgBouncer: PostgreSQL goes on with what a node and a pooler gave up."""
    if role:
        name = urlsplit(postgres_url).path[1:]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f'ALTER ROLE postgres IN DATABASE "{name}" {role}'.encode())
    pooler = start_pooler(postgres_url, 8, *lines)
    with stopping(pooler):
        node = service(pooler.url)
        erp = new_client(node, "--logins-per-minute", "0")
        assert logins([node], erp, 8) == {200: 8}
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE login_events IN ACCESS EXCLUSIVE MODE")
            began = time.monotonic()
            assert logins([node], erp, 1) == {503: 1}
            assert time.monotonic() - began < 2.5
        time.sleep(1)
        assert issued(node, erp) == 8 + stored


def test_nothing_is_kept_in_a_session_that_the_pooler_gives_to_another(tmp_path: Path) -> None:
    direct = database("postgresql://u@h/n", tmp_path)
    pooled = database("postgresql://u@h/n?pooling=transaction&sslmode=require", tmp_path)
    assert direct["OPTIONS"]["prepare_threshold"] > 1_000_000  # on request only
    assert pooled["OPTIONS"]["prepare_threshold"] is None
    assert pooled["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert pooled["OPTIONS"]["sslmode"] == "require"
    assert "pooling" not in pooled["OPTIONS"]  # libpq knows no such option


def test_pooling_is_transaction_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="pooling"):
        database("postgresql://u@h/n?pooling=session", tmp_path)
