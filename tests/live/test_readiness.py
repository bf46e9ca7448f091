"""Readiness knows what logins know; a node that only itself cannot serve accepts no connection."""

import importlib.util
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from django.db import OperationalError, connection

from taxpayers.shut_down import answered_within
from tests.conftest import StartService
from tests.introspection.api import INTROSPECT, REVOKE
from tests.introspection.party import Party, credentials
from tests.live.cluster import new_client
from tests.live.test_start_and_stop import is_listening
from tests.servers.postgres import Postgres, postgres_user, start_postgres
from tests.servers.processes import NotAvailable, slowness, stopping, until
from tests.servers.service import Service, manage, service_environment
from tests.servers.small_disk import mount_small_disk
from tests.servers.tcp_proxy import TcpProxy
from tests.support.command_line import other_database
from tests.support.erp import PATH, Erp

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class FakeClock:
    """Programs that start with `environment` see it; timers and the time since the start do not."""

    library: Path
    file: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",  # second: how often each program looks at the file
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",
            "NO_FAKE_STAT": "1",
            "FAKE_UTIME": "0",
        }

    def step(self, seconds: int) -> None:
        """From now on it is so many seconds ahead of the true time; negative: behind."""
        changed = self.file.with_suffix(".new")
        changed.write_text(f"{seconds:+d}\n")
        changed.replace(self.file)  # at once: no reader meets half a number


@pytest.fixture
def clock(tmp_path: Path) -> FakeClock:
    """One that is right until it is set. Raises NotAvailable without libfaketime."""
    found = importlib.util.find_spec("libfaketime")
    folder = Path(found.origin).parent if found and found.origin else None
    libraries = sorted(folder.rglob("libfaketime*.so*")) if folder else []
    if not libraries:
        raise NotAvailable("no libfaketime here: a clock cannot be set for one program only")
    clock = FakeClock(libraries[0], tmp_path / "clock")
    clock.step(0)
    return clock


UNLIMITED = ("--logins-per-minute", "0")
Outage = Callable[[Postgres, Service], Any]


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    server = start_postgres(synchronous_commit="on")
    with stopping(server):
        yield server


@pytest.fixture(scope="module")
def url(own_postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    url = own_postgres.create_database()
    environment = service_environment(tmp_path_factory.mktemp("migrate"), 0, DATABASE_URL=url)
    manage(environment, "migrate", "-v0")
    return url


@pytest.fixture(scope="module")
def node(url: str, services: StartService) -> Service:
    return services(url, WEB_PROCESSES="1")


@pytest.fixture(scope="module")
def erp(node: Service) -> Erp:
    return new_client(node, *UNLIMITED)


def execute(node: Service, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(node.environment["DATABASE_URL"], autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


@contextmanager
def full_disk(server: Postgres, node: Service) -> Iterator[None]:
    """Only that of this month's events; everything else can be written."""
    disk = mount_small_disk("events", 8, postgres_user())
    month = f"login_events_{datetime.now(UTC):%Y_%m}"
    with stopping(disk):
        server.execute(f"CREATE TABLESPACE events LOCATION '{disk.folder}'")
        execute(node, f"ALTER TABLE {month} SET TABLESPACE events")
        disk.fill()
        try:
            yield
        finally:
            disk.free()
            execute(node, f"ALTER TABLE {month} SET TABLESPACE pg_default")
            server.execute("DROP TABLESPACE events")


@contextmanager
def changed(server: Postgres, name: str, value: str, otherwise: str) -> Iterator[None]:
    server.set(name, value)
    try:
        yield
    finally:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER SYSTEM SET {name} = '{otherwise}'".encode())
            connection.execute("SELECT pg_reload_conf()")


def lost_standby(server: Postgres, node: Service) -> Any:
    return changed(server, "synchronous_standby_names", "gone", "")


def read_only(server: Postgres, node: Service) -> Any:
    return changed(server, "default_transaction_read_only", "on", "off")


def checks(node: Service) -> dict[str, str]:
    answer = httpx.get(f"{node.url}/health/ready", timeout=4 * slowness())
    found: dict[str, str] = answer.json()["checks"]
    assert (answer.status_code == 200) is (set(found.values()) == {"ok"})
    return found


def is_ready(node: Service) -> bool:
    return set(checks(node).values()) == {"ok"}


def log_in(node: Service, erp: Erp) -> int:
    return httpx.post(f"{node.url}{PATH}", data=erp.form, timeout=10).status_code


@pytest.mark.parametrize(
    ("outage", "with_logins", "without"),
    [
        (full_disk, "DiskFull", "a login cannot be stored: DiskFull"),
        (lost_standby, "NotAnswered", "no commit within 1 s: disk, or a standby that is lost"),
        (read_only, "ReadOnlySqlTransaction", "a login cannot be stored: ReadOnlySqlTransaction"),
    ],
)
def test_a_database_that_stores_no_login_is_named(
    outage: Outage, with_logins: str, without: str, own_postgres: Postgres, node: Service, erp: Erp
) -> None:
    until(lambda: is_ready(node))
    assert log_in(node, erp) == 200
    with outage(own_postgres, node):
        until(lambda: log_in(node, erp) == 503)  # the last page has room for a few
        lost = re.compile(rf"\d+ of \d+ in 5 s not stored: {with_logins}")
        until(lambda: log_in(node, erp) == 503 and bool(lost.fullmatch(checks(node)["logins"])))
        assert checks(node)["database"] == "ok"
        until(lambda: checks(node)["logins"] == without)
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        before = execute(node, sessions)
        assert {checks(node)["logins"] for _ in range(3)} == {without}
        assert execute(node, sessions) <= before, "no session of a probe is left waiting"
    until(lambda: is_ready(node))
    assert log_in(node, erp) == 200
    (left,) = execute(node, "SELECT count(*) FROM login_events WHERE client_id = ''")
    assert left == (0,), "what readiness writes is not there"


def test_many_who_ask_share_one_write(node: Service) -> None:
    time.sleep(5)  # so long no login is remembered
    written = "SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE relname LIKE 'login_events%'"
    execute(node, "SELECT pg_stat_clear_snapshot()")
    (before,) = execute(node, written)
    assert {is_ready(node) for _ in range(40)} == {True}
    time.sleep(1.5)  # until the statistics are there
    (after,) = execute(node, written)
    assert after[0] - before[0] < 10, "a few of each process, also for itself"


def by_socket(node: Service) -> httpx.Client:
    file = Path(node.environment["VAR_DIR"]) / f"health-{urlsplit(node.url).port}.sock"
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(file)), base_url="http://node")


def answer_of(node: Service, erp: Erp) -> int | str:
    try:
        return log_in(node, erp)
    except httpx.ConnectError:
        return "refused"
    except httpx.TransportError as error:
        return repr(error)


def test_a_node_with_a_wrong_clock_refuses_connections_while_others_serve(
    node: Service, erp: Erp, url: str, service: StartService, clock: FakeClock
) -> None:
    other = service(url, WEB_PROCESSES="2", **clock.environment)
    seen: Counter[int | str] = Counter()

    def everybody_logs_in() -> None:
        assert log_in(node, erp) == 200
        seen.update(answer_of(other, erp) for _ in range(3))

    def is_closed() -> bool:
        everybody_logs_in()
        return seen["refused"] > 30

    everybody_logs_in()
    clock.step(-3600)
    until(is_closed, 40)
    assert not is_listening(other)
    with by_socket(other) as operator:
        answer = operator.get("/health/ready")
        assert answer.status_code == 503
        assert answer.json()["checks"]["clock"].endswith("s behind the database's: check NTP")
        assert operator.get("/health/live").status_code == 200
        assert "node_ready 0.0" in operator.get("/metrics").text
        assert operator.post(PATH, data=erp.form).status_code == 404
    clock.step(0)
    until(lambda: is_listening(other))
    assert log_in(other, erp) == 200
    assert set(seen) <= {200, 503, "refused"}, "no connection that was accepted is lost"


def test_a_fault_of_all_nodes_closes_none(
    erp: Erp, url: str, service: StartService, clock: FakeClock
) -> None:
    nodes = [service(url, WEB_PROCESSES="1", **clock.environment) for _ in range(2)]
    assert {log_in(one, erp) for one in nodes} == {200}
    clock.step(3600)
    until(lambda: {log_in(one, erp) for one in nodes} == {503})
    ends_at = time.monotonic() + 15
    while time.monotonic() < ends_at:
        assert {answer_of(one, erp) for one in nodes} == {503}
        time.sleep(0.1)


ANSWER_SECONDS = 2.0
REQUESTS = 12  # over both processes of a node


@pytest.fixture
def door(postgres_url: str) -> Iterator[TcpProxy]:
    proxy = TcpProxy(urlsplit(postgres_url).port or 0)
    with stopping(proxy):
        yield proxy


@pytest.fixture
def silent_url(postgres_url: str, door: TcpProxy) -> str:
    return f"postgresql://postgres@127.0.0.1:{door.port}{urlsplit(postgres_url).path}"


def seconds_until_it_fails(statement: Callable[[], object]) -> float:
    began = time.monotonic()
    with pytest.raises(OperationalError):
        statement()
    return time.monotonic() - began


def execute_there(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.gate
def test_what_waits_longer_than_it_may_fails_and_the_next_connection_works(
    door: TcpProxy, silent_url: str, tmp_path: Path
) -> None:
    with other_database(silent_url, tmp_path):
        execute_there("SELECT 1")
        door.strand()
        with answered_within(0.5):
            assert 0.4 < seconds_until_it_fails(lambda: execute_there("SELECT 1")) < 2 + slowness()
        connection.close()
        with answered_within(10):
            execute_there("SELECT 1")


def statuses(node: Service, path: str) -> set[int]:
    return {httpx.get(f"{node.url}{path}", timeout=20).status_code for _ in range(REQUESTS)}


def keys_of(node: Service) -> set[int]:
    """How many keys each process publishes."""
    url = f"{node.url}/.well-known/jwks.json"
    return {len(httpx.get(url, timeout=20).json()["keys"]) for _ in range(REQUESTS)}


@pytest.mark.gate
def test_a_database_that_falls_silent_is_a_503_in_time_and_its_successor_is_found(
    service: StartService, door: TcpProxy, silent_url: str
) -> None:
    node = service(silent_url, WEB_PROCESSES="2")
    party = Party(node)
    tokens = [party.token(), party.token()]
    assert party.introspect(tokens[0])["active"] is True
    assert keys_of(node) == {1}
    door.strand()
    began = time.monotonic()

    def status_and_seconds(number: int) -> tuple[int, float]:
        path, who = ((INTROSPECT, party.api), (REVOKE, party.erp))[number % 2]
        began = time.monotonic()
        answer = client.post(path, data={**credentials(who), "token": tokens[number % 2]})
        return answer.status_code, time.monotonic() - began

    with httpx.Client(base_url=node.url, timeout=10) as client, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(status_and_seconds, range(24)))
    assert {status for status, _ in answers} <= {200, 503}
    assert 503 in {status for status, _ in answers}
    assert max(seconds for _, seconds in answers) < ANSWER_SECONDS + slowness()
    while statuses(node, "/health/ready") != {200}:
        assert time.monotonic() - began < 15 * slowness()
    node.manage("rotate_signing_key")
    while keys_of(node) != {2}:
        assert time.monotonic() - began < 40 * slowness()
        time.sleep(0.5)
