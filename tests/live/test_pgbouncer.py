"""The service through a real PgBouncer in transaction mode, with `deploy/pgbouncer.ini` itself.

PgBouncer comes from the operating system (Debian: `apt install pgbouncer`).
"""

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured

from identity.databases import database
from tests.conftest import StartService
from tests.live.test_live_service import logins, new_client, recorded
from tests.support import servers
from tests.support.erp import PATH, Erp
from tests.support.over_http import new_boss, sign_in

CONFIGURATION = servers.CHECKOUT / "deploy" / "pgbouncer.ini"
SESSIONS = 2  # of PostgreSQL, for all threads of two nodes


@dataclass
class Pooler:
    """A running PgBouncer."""

    program: str
    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """As the service is given it."""
        return f"{self.plain_url}?pooling=transaction"

    @property
    def plain_url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/identity"

    def restart(self) -> None:
        servers.stop_process(self.process, signal.SIGINT)
        self.process = _start(self.program, self.folder, self.port)

    def stop(self) -> None:
        servers.stop_process(self.process, signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_pooler(program: str, postgres_url: str) -> Pooler:
    """A PgBouncer in front of that database, which it calls `identity`."""
    folder = servers.new_folder("pgbouncer", servers.postgres_user())
    target, port = urlsplit(postgres_url), servers.free_port()
    text = CONFIGURATION.read_text()
    for pattern, replacement in (
        (
            r"(?m)^identity = .*",
            f"identity = host={target.hostname} port={target.port} dbname={target.path[1:]}",
        ),
        (r"listen_port = 6432", f"listen_port = {port}"),
        (r"auth_type = scram-sha-256", "auth_type = trust"),
        (r"/etc/pgbouncer", str(folder)),
        (r"default_pool_size = \d+", f"default_pool_size = {SESSIONS}"),
    ):
        text, found = re.subn(pattern, replacement, text)
        assert found, f"{CONFIGURATION} has no {pattern}"
    (folder / "pgbouncer.ini").write_text(f"{text}unix_socket_dir =\n")
    (folder / "userlist.txt").write_text('"postgres" ""\n')
    return Pooler(program, folder, port, _start(program, folder, port))


def _start(program: str, folder: Path, port: int) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as output:
        process = subprocess.Popen(
            [program, str(folder / "pgbouncer.ini")],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **servers.as_user(servers.postgres_user()),
        )

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    servers.wait_until(listens, process, folder / "log")
    return process


@pytest.fixture
def pooler(postgres_url: str) -> Iterator[Pooler]:
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if program is None:
        raise servers.NotAvailable("no PgBouncer here (apt install pgbouncer)")
    started = start_pooler(program, postgres_url)
    with servers.stopping(started):
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
    service: StartService, pooler: Pooler, postgres: servers.Postgres
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


def test_nothing_is_kept_in_a_session_that_the_pooler_gives_to_another(tmp_path: Path) -> None:
    kept = database("postgresql://u@h/n", tmp_path)
    pooled = database("postgresql://u@h/n?pooling=transaction&sslmode=require", tmp_path)
    assert kept["OPTIONS"]["prepare_threshold"] == 1
    assert pooled["OPTIONS"]["prepare_threshold"] is None
    assert pooled["DISABLE_SERVER_SIDE_CURSORS"] is True
    assert pooled["OPTIONS"]["sslmode"] == "require"
    assert "pooling" not in pooled["OPTIONS"]  # libpq knows no such option


def test_pooling_is_transaction_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="pooling"):
        database("postgresql://u@h/n?pooling=session", tmp_path)
