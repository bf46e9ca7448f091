"""Processes that start, stop, die and hang: no login that was accepted is lost (contract 1)."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import cast
from urllib.parse import urlencode, urlsplit

import httpx
import pytest

from tests.conftest import StartService
from tests.live.test_http_server import FORM_TYPE, GET_LIVE, START, assert_refusal, login
from tests.live.test_live_service import new_client, recorded
from tests.servers.processes import (
    CHECKOUT,
    children,
    free_port,
    start_process,
    stopping,
    suspended,
)
from tests.servers.service import Service, service_environment
from tests.servers.wire import connected, read_answer, read_to_end
from tests.support.accounts import new_staff, signed_in
from tests.support.erp import FORM, PATH, Erp

CONFIG = CHECKOUT / "deploy" / "gunicorn.conf.py"
UNLIMITED = ("--logins-per-minute", "0")


def status_of(node: Service, request: bytes) -> int:
    """Of a new connection; many times quicker than a client of httpx."""
    with connected(node.url, timeout=3) as connection:
        connection.sendall(request)
        return read_answer(connection).status


def until(condition: Callable[[], object], seconds: float = 10.0) -> float:
    """How long it took until the condition was true."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds, "it never came true"
        time.sleep(0.02)
    return time.monotonic() - began


class Clients:
    """Threads that log in again and again, each on one connection as long as that is open."""

    def __init__(self, node: Service, erp: Erp, count: int, *, one_each: bool = False) -> None:
        self.address = urlsplit(node.url).netloc
        self.body = urlencode(erp.form)
        self.statuses: Counter[int | str] = Counter()
        self.one_each = one_each
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self._log_in) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def _log_in(self) -> None:
        connection = HTTPConnection(self.address, timeout=30)
        headers = {"Content-Type": FORM} | ({"Connection": "close"} if self.one_each else {})
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


@pytest.mark.parametrize("one_each", [False, True], ids=["persistent", "new connections"])
def test_a_stop_answers_every_login_that_was_accepted(
    service: StartService, one_each: bool
) -> None:
    node = service()
    erp = new_client(node, *UNLIMITED)
    clients = Clients(node, erp, 12, one_each=one_each)
    until(lambda: clients.statuses[200] > 30)
    node.process.send_signal(signal.SIGTERM)
    assert node.process.wait(20) == 0
    statuses = clients.end()
    assert set(statuses) == {200}
    assert recorded(node, erp) == statuses[200]


def test_an_idle_connection_may_bring_one_more_login_after_the_stop_has_begun(
    service: StartService,
) -> None:
    node = service()
    request = login(new_client(node))
    with connected(node.url) as idle, connected(node.url) as unfinished:
        idle.sendall(GET_LIVE)
        assert read_answer(idle).headers.get("connection") != "close"
        unfinished.sendall(request[:-20])
        time.sleep(0.2)
        node.process.send_signal(signal.SIGHUP)
        until(lambda: not is_listening(node))
        time.sleep(1)
        for connection, rest in ((idle, request), (unfinished, request[-20:])):
            connection.sendall(rest)
            answer = read_answer(connection)
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert read_to_end(connection) == b""
    assert node.process.wait(5) == 0


def test_once_a_stop_has_begun_nobody_new_gets_in(service: StartService) -> None:
    node = service()
    with suspended(*children(node.pid)):  # so that they still have the socket
        node.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert not is_listening(node)
    assert node.process.wait(10) == 0


def test_a_stop_just_after_a_process_was_started_ends_it_too(
    service: StartService, tmp_path: Path
) -> None:
    node = service()
    slow_start = tmp_path / "slow_start.py"
    slow_start.write_text(
        f"import runpy\nglobals().update(runpy.run_path({str(CONFIG)!r}))\n"
        "def post_fork(server, worker):\n"
        "    import time\n"
        "    time.sleep(2)\n"
    )
    node.stop()
    until(lambda: not is_listening(node))
    again = start_process(
        [str(Path(sys.executable).parent / "gunicorn"), "--config", str(slow_start)],
        tmp_path / "again.log",
        lambda: b"Booting worker" in (tmp_path / "again.log").read_bytes(),
        env=node.environment,
    )
    with stopping(Service(node.url, node.environment, again, tmp_path / "again.log")):
        again.send_signal(signal.SIGTERM)
        assert again.wait(12) == 0  # without a handler it takes `graceful_timeout`


def is_listening(node: Service) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.1)
        host, port = urlsplit(node.url).netloc.split(":")
        return probe.connect_ex((host, int(port))) == 0


def test_a_stop_waits_for_an_idle_connection_no_longer_than_its_proxy_does(
    service: StartService,
) -> None:
    node = service()
    with connected(node.url) as idle:
        began = time.monotonic()
        node.process.send_signal(signal.SIGTERM)
        assert read_to_end(idle) == b""
        assert 4 < time.monotonic() - began < 9
    assert node.process.wait(5) == 0


def test_a_killed_process_is_replaced_within_a_second_and_the_others_go_on(
    service: StartService,
) -> None:
    node = service()
    request = login(new_client(node, *UNLIMITED))
    for _ in range(3):
        before = set(children(node.pid))
        assert len(before) == 2
        os.kill(min(before), signal.SIGKILL)
        began = time.monotonic()
        assert {status_of(node, request) for _ in range(5)} == {200}
        until(partial(is_replaced, node, min(before)))
        assert time.monotonic() - began < 3  # gunicorn looks every second


def is_replaced(node: Service, process: int) -> bool:
    running = children(node.pid)
    return len(running) == 2 and process not in running


def test_a_process_that_hangs_is_replaced_and_the_other_answers_meanwhile(
    service: StartService,
) -> None:
    node = service()
    request = login(new_client(node, *UNLIMITED))
    hanging = children(node.pid)[0]
    with suspended(hanging):
        assert {status_of(node, request) for _ in range(10)} == {200}
        until(lambda: hanging not in children(node.pid), 15)
    until(lambda: len(children(node.pid)) == 2)


def test_connections_that_come_at_once_spread_over_the_processes(service: StartService) -> None:
    node = service()
    time.sleep(0.5)  # until the connections that asked whether it is ready have gone
    before = {pid: sockets_of(pid) for pid in children(node.pid)}
    for _ in range(5):
        with contextlib.ExitStack() as stack:
            for _ in range(16):
                stack.enter_context(connected(node.url))
            until(lambda: sum(map(sockets_of, before)) == sum(before.values()) + 16)
            assert all(5 <= sockets_of(pid) - had <= 11 for pid, had in before.items())
        until(lambda: sum(map(sockets_of, before)) == sum(before.values()))


def sockets_of(pid: int) -> int:
    count = 0
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += str(file.readlink()).startswith("socket:")
    return count


def test_the_first_client_that_is_let_in_gets_its_token(
    service: StartService, tmp_path: Path
) -> None:
    node = service()
    request = login(new_client(node))
    node.stop()
    until(lambda: not is_listening(node))
    again = start_process(
        [str(argument) for argument in cast("list[str]", node.process.args)],
        tmp_path / "again.log",
        lambda: is_listening(node),
        env=node.environment,
    )
    with stopping(Service(node.url, node.environment, again, tmp_path / "again.log")):
        assert status_of(node, request) == 200


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        (
            {"WEB_PROCESSES": "abc"},
            "WEB_PROCESSES must be a whole number from 1 to 256, not 'abc'."
            " Example: WEB_PROCESSES=4",
        ),
        (
            {"WEB_THREADS": "0", "WEB_REQUESTS": "-1"},
            "WEB_THREADS must be a whole number from 1 to 256, not '0'. Example: WEB_THREADS=4\n"
            "WEB_REQUESTS must be a whole number from 1 to 100000, not '-1'."
            " Example: WEB_REQUESTS=256",
        ),
        (
            {"PORT": "http"},
            "PORT must be a whole number from 0 to 65535, not 'http'. Example: PORT=8000",
        ),
        (
            {"SERVE": "logins"},
            "SERVE must be login, staff or both, not 'logins'. Example: SERVE=login",
        ),
        (
            {"DATABASE_URL": "mysql://x"},
            "The URL of a database must begin with postgresql:// or sqlite://, not 'mysql'.",
        ),
    ],
)
def test_a_wrong_setting_is_one_clear_line(
    tmp_path: Path, setting: dict[str, str], line: str
) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "gunicorn"), "--config", "deploy/gunicorn.conf.py"],
        cwd=CHECKOUT,
        env=service_environment(tmp_path, free_port(), **setting),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,  # a server that starts all the same
    )
    assert (done.returncode, done.stderr) == (1, f"{line}\n")


# --- More than one process can do -----------------------------------------------------------------


def test_what_is_too_much_is_answered_at_once_and_what_was_let_in_is_finished(
    service: StartService,
) -> None:
    node = service(WEB_PROCESSES="1", WEB_REQUESTS="6")
    erp = new_client(node, *UNLIMITED)
    with contextlib.ExitStack() as stack:
        release = stack.enter_context(locked(node))
        accepted = [stack.enter_context(connected(node.url)) for _ in range(6)]
        for connection in accepted:  # they wait for the database, for which they have a second
            connection.sendall(login(erp))
        time.sleep(0.1)
        for _ in range(5):
            with connected(node.url, timeout=1) as connection:
                connection.sendall(login(erp))
                refused = read_answer(connection)
            assert_refusal(refused, 503, "temporarily_unavailable", "try again")
            assert refused.headers["retry-after"] == "5"
        assert status_of(node, GET_LIVE) == 200
        release()
        # On a busy machine the second was over for some, and they were told so.
        assert {read_answer(connection).status for connection in accepted} <= {200, 503}
    assert httpx.post(f"{node.url}{PATH}", data=erp.form).status_code == 200


@contextlib.contextmanager
def locked(node: Service) -> Iterator[Callable[[], object]]:
    """Another writer has the database of the node; what it yields lets go of it."""
    file = Path(node.environment["VAR_DIR"]) / "identity.sqlite3"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield lambda: other.execute("ROLLBACK")


def test_connections_beyond_the_bound_get_one_503_each_and_the_others_go_on(
    service: StartService,
) -> None:
    node = service(WEB_PROCESSES="1", WEB_CONNECTIONS="10")
    request = login(new_client(node))
    with contextlib.ExitStack() as stack:
        first = [stack.enter_context(connected(node.url)) for _ in range(10)]
        time.sleep(0.2)
        for _ in range(5):
            with connected(node.url) as late:
                late.sendall(request)
                answer = read_answer(late)
                assert (answer.status, answer.headers["connection"]) == (503, "close")
                assert answer.json["error"] == "temporarily_unavailable"
        with connected(node.url) as late:
            late.sendall(GET_LIVE)
            assert read_answer(late).status == 200
        first.pop().close()
        first[0].sendall(request)
        assert read_answer(first[0]).status == 200


def test_5000_idle_connections_do_not_keep_a_login_waiting(service: StartService) -> None:
    node = service()
    request = login(new_client(node, *UNLIMITED))
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connected(node.url)) for _ in range(5000)]
        began = time.monotonic()
        assert {status_of(node, request) for _ in range(50)} == {200}
        assert time.monotonic() - began < 5
        for connection in idle[::100]:
            connection.sendall(GET_LIVE)
            assert read_answer(connection).status == 200


def test_800_slow_bodies_do_not_keep_a_login_waiting(service: StartService) -> None:
    node = service()
    request = login(new_client(node, *UNLIMITED))
    part = START + FORM_TYPE + b"Content-Length: 500\r\n\r\nclient_id=a"
    with contextlib.ExitStack() as stack:
        for _ in range(800):
            stack.enter_context(connected(node.url)).sendall(part)
        time.sleep(0.5)
        assert {status_of(node, request) for _ in range(20)} == {200}


@pytest.mark.parametrize(
    "path",
    [
        *("/errors/", "/connect/token", "/sandbox/reset", "/nothing"),
        *("/admin/", "/admin/taxpayers/taxpayer/import_registry/"),
        *("/api/v1/management/taxpayers", "/api/v1/management/imports/taxpayers"),
    ],
)
def test_slow_bodies_that_are_too_long_take_no_place(service: StartService, path: str) -> None:
    """Longer than what the server reads before it begins with a request."""
    node = service(WEB_PROCESSES="1", WEB_REQUESTS="20")
    request = login(new_client(node, *UNLIMITED))
    start = START.replace(PATH.encode(), path.encode())
    part = start + FORM_TYPE + b"Content-Length: 60000\r\n\r\n" + b"a" * 17_000
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connected(node.url)) for _ in range(60)]
        for connection in slow:
            connection.sendall(part)
        time.sleep(0.5)
        assert {status_of(node, request) for _ in range(20)} == {200}
        assert {read_answer(connection).status for connection in slow[:20]} <= {303, 400, 401, 413}


def test_files_of_staff_may_be_long_and_wait_for_no_login(service: StartService) -> None:
    """Each place of a file that is being sent is taken; what comes next is told so at once."""
    node = service(WEB_PROCESSES="1", WEB_REQUESTS="4")
    request = login(new_client(node, *UNLIMITED))
    key = node.run(session_of_staff)
    path = "/admin/taxpayers/taxpayer/import_registry/"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nCookie: sessionid={key}\r\n"
    upload = head.encode() + FORM_TYPE + b"Content-Length: 200000\r\n\r\n" + b"a" * 140_000
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(connected(node.url)) for _ in range(4)]
        for connection in slow:
            connection.sendall(upload)
        until(lambda: files_of(children(node.pid)[0]) == 4)
        with connected(node.url) as late:
            late.sendall(upload)
            answer = read_answer(late)
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert answer.headers["content-type"].startswith("text/html")
        assert {status_of(node, request) for _ in range(20)} == {200}
        for connection in slow:
            connection.sendall(b"a" * 60_000)
            assert read_answer(connection).status == 403, "it reached the page: no CSRF token"
    until(lambda: files_of(children(node.pid)[0]) == 0)
    stranger = upload.replace(key.encode(), b"x" * 32)
    other = upload.replace(b"import_registry", b"register_taxpayer")
    assert [status_of(node, sent) for sent in (stranger, other)] == [303, 413]


def session_of_staff() -> str:
    return str(signed_in(new_staff()).session.session_key)


def files_of(pid: int) -> int:
    """Temporary files of the process: they have no name any more."""
    links = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(str(file.readlink()))
    return sum(link.startswith(tempfile.gettempdir()) and "(deleted)" in link for link in links)
