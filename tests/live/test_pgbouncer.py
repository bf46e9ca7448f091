"""The service through a real PgBouncer in transaction mode, with `deploy/pgbouncer.ini` itself."""

import signal
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.conftest import StartService
from tests.live.cluster import logins, new_client, recorded
from tests.servers.postgres import Postgres, postgres_user
from tests.servers.processes import (
    CHECKOUT,
    Program,
    changed,
    free_port,
    listens,
    new_folder,
    program_of,
    slowness,
    start_process,
    stopping,
    until,
)
from tests.servers.service import Service
from tests.support.erp import Erp
from tests.support.over_http import new_boss, sign_in

pytestmark = pytest.mark.processes

CONFIGURATION = CHECKOUT / "deploy" / "pgbouncer.ini"


class Pooler(Program):
    ends_on = signal.SIGINT

    @property
    def url(self) -> str:
        """As the service is given it."""
        return f"{self.plain_url}?pooling=transaction"

    @property
    def plain_url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/identity"


def start_pooler(postgres_url: str, sessions: int, *more: str) -> Pooler:
    """With so many sessions of that database, as `identity`, and `more` lines of configuration."""
    program = program_of("pgbouncer", "pgbouncer")
    folder, port = new_folder("pgbouncer", postgres_user()), free_port()
    target = urlsplit(postgres_url)
    text = changed(
        CONFIGURATION.read_text(),
        (
            r"^identity = .*",
            f"identity = host={target.hostname} port={target.port} dbname={target.path[1:]}",
        ),
        (r"listen_port = 6432", f"listen_port = {port}"),
        (r"auth_type = scram-sha-256", "auth_type = trust"),
        (r"/etc/pgbouncer", str(folder)),
        (r"default_pool_size = \d+", f"default_pool_size = {sessions}"),
    )
    (folder / "pgbouncer.ini").write_text("\n".join([text, "unix_socket_dir =", *more, ""]))
    (folder / "userlist.txt").write_text('"postgres" ""\n')
    command = [program, str(folder / "pgbouncer.ini")]
    log, user = folder / "log", postgres_user()
    return Pooler(
        *(folder, port),
        lambda: start_process(command, log, lambda: listens(port), cwd=folder, user=user),
    )


SESSIONS = 2  # of PostgreSQL, for all threads of two nodes
UNLIMITED = ("--logins-per-minute", "0")


@pytest.fixture(scope="module")
def pooler(module_database: str) -> Iterator[Pooler]:
    started = start_pooler(module_database, SESSIONS)
    with stopping(started):
        yield started


@pytest.fixture(scope="module")
def nodes(services: StartService, pooler: Pooler) -> list[Service]:
    return [services(pooler.url), services(pooler.url)]


def prepared_statements(pooler: Pooler) -> int:
    """How many PostgreSQL keeps in the sessions of the pool."""
    with psycopg.connect(pooler.plain_url, prepare_threshold=None, autocommit=True) as connection:
        found = [
            connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
            for _ in range(10)
        ]
    return max(int(row[0]) for row in found if row)


def test_limits_and_record_are_exact_through_a_pooler(nodes: list[Service], pooler: Pooler) -> None:
    erp = new_client(nodes[0], "--logins-per-minute", "20")
    assert logins(nodes, erp, 60) == {200: 20, 429: 40}
    assert recorded(nodes[0], erp) == 20
    assert logins(nodes, Erp(erp.client_id, "cs_test_" + "x" * 40), 4) == {400: 4}
    assert prepared_statements(pooler) == 0
    nodes[1].manage("prune_logins", "--older-than", "400d")


def test_staff_work_through_a_pooler(nodes: list[Service]) -> None:
    erp = new_client(nodes[0])
    assert logins(nodes[:1], erp, 3) == {200: 3}
    with httpx.Client(base_url=nodes[0].url, timeout=30) as browser:
        assert sign_in(browser, nodes[0].url, new_boss(nodes[0])).headers["Location"] == "/admin/"
        for path in ("", "taxpayers/systemuser/", "tokens/loginevent/", "taxpayers/change/report/"):
            assert browser.get(f"/admin/{path}").status_code == 200, path
        assert erp.client_id in browser.get("/admin/taxpayers/systemuser/").text


def test_a_pooler_that_restarts_costs_no_login_and_a_database_lost_behind_it_is_a_503(
    nodes: list[Service], pooler: Pooler, postgres: Postgres, module_database: str
) -> None:
    node = nodes[:1]
    erp = new_client(node[0], *UNLIMITED)
    assert logins(node, erp, 24) == {200: 24}  # every thread has a connection by now
    pooler.restart()
    assert logins(node, erp, 24) == {200: 24}
    name = urlsplit(module_database).path[1:]
    postgres.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608 - the name of our own database
    )
    started = time.monotonic()
    assert logins(node, erp, 4) == {503: 4}
    assert time.monotonic() - started < 15 * slowness()
    postgres.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    until(lambda: logins(node, erp, 1) == {200: 1})  # the pooler itself tries again every second
    node[0].manage("block_system_user", erp.client_id, "--reason", "test")
    assert logins(node, erp, 8) == {400: 8}


@pytest.mark.parametrize(
    ("role", "lines", "stored"),
    [("", [], 1), ("", ["query_timeout = 1.1"], 1), ("SET statement_timeout = '1s'", [], 0)],
    ids=["as it is", "query_timeout", "statement_timeout"],
)
def test_what_gave_up_is_stored_unless_the_role_has_a_deadline(
    service: StartService, postgres_url: str, role: str, lines: list[str], stored: int
) -> None:
    if role:
        name = urlsplit(postgres_url).path[1:]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f'ALTER ROLE postgres IN DATABASE "{name}" {role}'.encode())
    pooler = start_pooler(postgres_url, 8, *lines)
    with stopping(pooler):
        node = service(pooler.url)
        erp = new_client(node, *UNLIMITED)
        assert logins([node], erp, 8) == {200: 8}
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE login_events IN ACCESS EXCLUSIVE MODE")
            began = time.monotonic()
            assert logins([node], erp, 1) == {503: 1}
            assert time.monotonic() - began < 1.5 + slowness()
        time.sleep(1)
        assert recorded(node, erp) == 8 + stored
