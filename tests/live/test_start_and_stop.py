"""Processes that start, stop, die and hang: no login that was accepted is lost (contract 1)."""

import contextlib
import os
import signal
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from tests.conftest import StartService
from tests.live.cluster import new_client, recorded
from tests.live.test_http_server import FORM_TYPE, GET_LIVE, START, assert_refusal, login
from tests.servers.processes import (
    children_of,
    free_port,
    listens,
    run_python,
    slowness,
    start_process,
    stopping,
    suspended,
    until,
)
from tests.servers.service import CONFIGURATION, GUNICORN, Service, service_environment
from tests.servers.wire import connected, read_answer, read_to_end
from tests.support.accounts import new_staff, signed_in
from tests.support.databases import MigratedSqlite
from tests.support.erp import FORM, PATH, Erp

pytestmark = pytest.mark.processes

UNLIMITED = ("--logins-per-minute", "0")
PLACES, CONNECTIONS = 6, 600  # of the node that has few


@pytest.fixture(scope="module")
def two(services: StartService) -> Service:
    """A node of two processes; its tests may kill those, and leave it with two again."""
    return services(QUICK="1")


@pytest.fixture(scope="module")
def small(services: StartService) -> Service:
    return services(WEB_PROCESSES="1", WEB_REQUESTS=str(PLACES), WEB_CONNECTIONS=str(CONNECTIONS))


@pytest.fixture(scope="module")
def request_of(two: Service, small: Service) -> bytes:
    """A login; both nodes have the same database."""
    return login(new_client(two, *UNLIMITED))


def status_of(node: Service, request: bytes) -> int:
    """Of a new connection; many times quicker than a client of httpx."""
    with connected(node.url, timeout=10) as connection:
        connection.sendall(request)
        return read_answer(connection).status


def is_listening(node: Service) -> bool:
    return listens(urlsplit(node.url).port or 0)


# --- Stop and start -------------------------------------------------------------------------------


class Clients:
    """Threads that log in again and again; every second one on a new connection each time."""

    def __init__(self, node: Service, erp: Erp, count: int) -> None:
        self.address = urlsplit(node.url).netloc
        self.body = urlencode(erp.form)
        self.statuses: Counter[int | str] = Counter()
        self.is_over = threading.Event()
        ways: list[dict[str, str]] = [{}, {"Connection": "close"}]
        self.threads = [
            threading.Thread(target=self._log_in, args=[{"Content-Type": FORM} | ways[n % 2]])
            for n in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def _log_in(self, headers: dict[str, str]) -> None:
        connection = HTTPConnection(self.address, timeout=30)
        while not self.is_over.is_set():
            try:
                connection.connect() if connection.sock is None else None
            except OSError:
                return  # nobody listens any more
            try:
                connection.request("POST", PATH, self.body, headers)
                answer = connection.getresponse()
                answer.read()
                self.statuses[answer.status] += 1
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a login that was lost
                self.statuses[repr(error)] += 1
                return

    def end(self) -> Counter[int | str]:
        self.is_over.set()
        for thread in self.threads:
            thread.join(40)
        return self.statuses


def test_processes_that_lost_their_master_end_and_the_node_can_be_started_again(
    service: StartService,
) -> None:
    node = service(QUICK="1")
    erp = new_client(node, *UNLIMITED)
    processes = children_of(node.pid)
    os.kill(node.pid, signal.SIGKILL)
    until(lambda: not is_listening(node))
    until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
    again = service(QUICK="1", PORT=str(urlsplit(node.url).port))
    assert status_of(again, login(erp)) == 200


@pytest.mark.gate
def test_a_stop_answers_every_login_that_was_accepted(service: StartService) -> None:
    node = service()
    erp = new_client(node, *UNLIMITED)
    clients = Clients(node, erp, 12)
    until(lambda: clients.statuses[200] > 60)
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(20) == 0
    statuses = clients.end()
    assert set(statuses) <= {200, 503}
    # On a busy machine SQLite refuses some, before the stop as well.
    assert statuses[503] == node.log.count("TooLate: the database does not answer in time")
    assert recorded(node, erp) == statuses[200]


def test_a_stop_lets_nobody_in_and_waits_a_while_for_the_connections_that_are_open(
    service: StartService,
) -> None:
    node = service(QUICK="1")
    request = login(new_client(node))
    with (
        connected(node.url) as idle,
        connected(node.url) as unfinished,
        connected(node.url) as mute,
    ):
        idle.sendall(GET_LIVE)
        assert read_answer(idle).headers.get("connection") != "close"
        unfinished.sendall(request[:-20])
        time.sleep(0.2)
        with suspended(*children_of(node.pid)):  # so that they still have the socket
            node.process.send_signal(signal.SIGHUP)
            until(lambda: not is_listening(node))
        began = time.monotonic()
        time.sleep(1)  # until each process knows
        for connection, rest in ((idle, request), (unfinished, request[-20:])):
            connection.sendall(rest)
            answer = read_answer(connection)
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert read_to_end(connection) == b""
        assert read_to_end(mute) == b""
        assert 1.5 < time.monotonic() - began < 10 * slowness()
    assert node.process.wait(10) == 0


@pytest.fixture
def asleep(migrated_sqlite: MigratedSqlite, tmp_path: Path) -> Service:
    """A service that nothing has started yet, with its database."""
    environment = service_environment(tmp_path, free_port())
    migrated_sqlite.write_to(tmp_path / "identity.sqlite3")
    unborn: Any = None
    url = f"http://127.0.0.1:{environment['PORT']}"
    return Service(url, environment, unborn, tmp_path / "service.log")


@contextlib.contextmanager
def started(node: Service, configuration: Path, is_begun: Callable[[], bool]) -> Iterator[Any]:
    command = [GUNICORN, "--config", str(configuration)]
    process = start_process(command, node.log_file, is_begun, env=node.environment)
    with stopping(Service(node.url, node.environment, process, node.log_file)):
        yield process


def test_a_stop_just_after_a_process_was_started_ends_it_too(
    asleep: Service, tmp_path: Path
) -> None:
    slow_start = tmp_path / "slow_start.py"
    slow_start.write_text(
        f"import runpy\nglobals().update(runpy.run_path({str(CONFIGURATION)!r}))\n"
        "def post_fork(server, worker):\n"
        "    import time\n"
        "    time.sleep(1)\n"
    )
    with started(asleep, slow_start, lambda: "Booting worker" in asleep.log) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(12) == 0  # without a handler it takes `graceful_timeout`


def test_the_first_client_that_is_let_in_gets_its_token(asleep: Service) -> None:
    request = login(new_client(asleep))
    with started(asleep, CONFIGURATION, lambda: is_listening(asleep)):
        assert status_of(asleep, request) == 200


@pytest.mark.gate
def test_each_wrong_setting_is_one_clear_line(tmp_path: Path) -> None:
    settings = {"PORT": "http", "WEB_PROCESSES": "abc", "WEB_THREADS": "0"}
    environment = service_environment(tmp_path, free_port(), **settings)
    done = run_python(["-m", "gunicorn", "--config", str(CONFIGURATION)], environment, timeout=60)
    assert done.returncode == 1
    lines = zip(sorted(done.stderr.splitlines()), settings.items(), strict=True)
    for line, (name, value) in lines:  # what it says of each kind is in operations/test_settings.py
        assert line.startswith(f"{name} must be a whole number from ")
        assert f", not '{value}'. Example: {name}=" in line


# --- A process dies or hangs ----------------------------------------------------------------------


@pytest.mark.gate
def test_a_killed_process_is_replaced_at_once_and_the_others_go_on(
    two: Service, request_of: bytes
) -> None:
    killed = children_of(two.pid)[0]
    os.kill(killed, signal.SIGKILL)
    began = time.monotonic()
    assert {status_of(two, request_of) for _ in range(5)} == {200}
    until(lambda: len(children_of(two.pid)) == 2 and killed not in children_of(two.pid))
    assert time.monotonic() - began < 2 + slowness()  # gunicorn looks every second


def test_a_process_that_hangs_is_replaced_and_the_other_answers_meanwhile(
    two: Service, request_of: bytes
) -> None:
    until(lambda: len(children_of(two.pid)) == 2)
    hanging = children_of(two.pid)[0]
    with suspended(hanging):
        assert {status_of(two, request_of) for _ in range(10)} == {200}
        until(lambda: hanging not in children_of(two.pid))
    until(lambda: len(children_of(two.pid)) == 2)


# --- Many connections -----------------------------------------------------------------------------


def files_of(pid: int) -> list[str]:
    links = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(str(file.readlink()))
    return links


def sockets_of(pid: int) -> int:
    return sum(link.startswith("socket:") for link in files_of(pid))


def test_connections_that_come_at_once_spread_over_the_processes(service: StartService) -> None:
    node = service()
    assert status_of(node, GET_LIVE) == 200
    time.sleep(0.5)  # until the connections that asked whether it is ready have gone
    before = {pid: sockets_of(pid) for pid in children_of(node.pid)}
    for _ in range(3):
        with contextlib.ExitStack() as stack:
            for _ in range(16):
                stack.enter_context(connected(node.url))
            until(lambda: sum(map(sockets_of, before)) == sum(before.values()) + 16)
            assert all(5 <= sockets_of(pid) - had <= 11 for pid, had in before.items())
        until(lambda: sum(map(sockets_of, before)) == sum(before.values()))


def test_5000_idle_connections_do_not_keep_a_login_waiting(node: Service) -> None:
    request = login(new_client(node, *UNLIMITED))
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connected(node.url)) for _ in range(5000)]
        assert {status_of(node, request) for _ in range(20)} == {200}
        for connection in idle[::500]:
            connection.sendall(GET_LIVE)
            assert read_answer(connection).status == 200


def test_800_slow_bodies_do_not_keep_a_login_waiting(node: Service) -> None:
    request = login(new_client(node, *UNLIMITED))
    part = START + FORM_TYPE + b"Content-Length: 500\r\n\r\nclient_id=a"
    with contextlib.ExitStack() as stack:
        for _ in range(800):
            stack.enter_context(connected(node.url)).sendall(part)
        assert {status_of(node, request) for _ in range(20)} == {200}


# --- More than one process can do -----------------------------------------------------------------


@contextlib.contextmanager
def locked(node: Service) -> Iterator[Callable[[], object]]:
    """Another writer has the database of the node; what it yields lets go of it."""
    file = Path(node.environment["VAR_DIR"]) / "identity.sqlite3"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield lambda: other.execute("ROLLBACK")


def test_what_is_too_much_is_answered_at_once_and_what_was_let_in_is_finished(
    small: Service, request_of: bytes
) -> None:
    with contextlib.ExitStack() as stack:
        release = stack.enter_context(locked(small))
        accepted = [stack.enter_context(connected(small.url)) for _ in range(PLACES)]
        for connection in accepted:  # they wait for the database, for which they have a second
            connection.sendall(request_of)
        time.sleep(0.1)
        for _ in range(5):
            with connected(small.url) as connection:
                connection.sendall(request_of)
                refused = read_answer(connection)
            assert_refusal(refused, 503, "temporarily_unavailable", "try again")
            assert int(refused.headers["retry-after"]) >= 5
        assert status_of(small, GET_LIVE) == 200
        release()
        # On a busy machine the second was over for some, and they were told so.
        assert {read_answer(connection).status for connection in accepted} <= {200, 503}
    assert status_of(small, request_of) == 200


def test_connections_beyond_the_bound_get_one_503_each_and_the_others_go_on(
    small: Service, request_of: bytes
) -> None:
    (process,) = children_of(small.pid)
    until(lambda: sockets_of(process) < 60)  # those of other tests have gone
    with contextlib.ExitStack() as stack:
        first = [stack.enter_context(connected(small.url)) for _ in range(CONNECTIONS)]
        time.sleep(0.2)
        for _ in range(3):
            with connected(small.url) as late:
                late.sendall(request_of)
                answer = read_answer(late)
                assert (answer.status, answer.headers["connection"]) == (503, "close")
                assert answer.json["error"] == "temporarily_unavailable"
        assert status_of(small, GET_LIVE) == 200
        first.pop().close()
        first[0].sendall(request_of)
        assert read_answer(first[0]).status == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/errors/", "/connect/token", "/sandbox/reset", "/nothing"),
        *("/admin/", "/admin/taxpayers/taxpayer/import_registry/"),
        *("/api/v1/management/taxpayers", "/api/v1/management/imports/taxpayers"),
    ],
)
def test_slow_bodies_that_are_too_long_take_no_place(
    small: Service, request_of: bytes, path: str
) -> None:
    """Longer than what the server reads before it begins with a request."""
    start = START.replace(PATH.encode(), path.encode())
    part = start + FORM_TYPE + b"Content-Length: 60000\r\n\r\n" + b"a" * 17_000
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connected(small.url)) for _ in range(60)]
        for connection in slow:
            connection.sendall(part)
        # Each at once; 503: more refusals at the same moment than there are places.
        assert {read_answer(one).status for one in slow} <= {303, 400, 401, 413, 503}
        assert {status_of(small, request_of) for _ in range(20)} == {200}


def test_files_of_staff_may_be_long_and_wait_for_no_login(
    small: Service, request_of: bytes
) -> None:
    """Each place of a file that is being sent is taken; what comes next is told so at once."""
    key = small.run(lambda: str(signed_in(new_staff()).session.session_key))
    path = "/admin/taxpayers/taxpayer/import_registry/"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nCookie: sessionid={key}\r\n"
    upload = head.encode() + FORM_TYPE + b"Content-Length: 200000\r\n\r\n" + b"a" * 140_000
    (process,) = children_of(small.pid)
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connected(small.url)) for _ in range(4)]
        for connection in slow:
            connection.sendall(upload)
        until(lambda: unnamed_files_of(process) == 4)
        with connected(small.url) as late:
            late.sendall(upload)
            answer = read_answer(late)
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert answer.headers["content-type"].startswith("text/html")
        assert {status_of(small, request_of) for _ in range(20)} == {200}
        for connection in slow:
            connection.sendall(b"a" * 60_000)
            assert read_answer(connection).status == 403, "it reached the page: no CSRF token"
    until(lambda: unnamed_files_of(process) == 0)
    stranger = upload.replace(key.encode(), b"x" * 32)
    other = upload.replace(b"import_registry", b"register_taxpayer")
    assert [status_of(small, sent) for sent in (stranger, other)] == [303, 413]


def unnamed_files_of(pid: int) -> int:
    """Temporary files of the process: they have no name any more."""
    folder = tempfile.gettempdir()
    return sum(link.startswith(folder) and "(deleted)" in link for link in files_of(pid))
