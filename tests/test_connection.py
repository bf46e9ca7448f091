"""One connection of the server: its deadlines, what it writes, and who accepts the next one."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from uvicorn.config import Config
from uvicorn.server import ServerState

from identity.server import connection, limits, worker
from identity.server.answers import InvalidHeader, head
from identity.server.connection import Connection
from identity.server.fair_share import ConnectionCounts
from identity.server.overload import LIVE, MAX_WAIT_SECONDS, StartQueue
from identity.server.worker import Process
from tests.servers.nginx import CONFIGURATION
from tests.servers.processes import run_python
from tests.servers.service import manage, service_environment
from tests.servers.wire import WireAnswer, answers_in
from tests.support.databases import MigratedSqlite
from tokens.answers.response import WHOLE_ANSWER, Answer
from tokens.store.lanes import CALL_SECONDS

GET = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
UPLOAD = POST + b"Transfer-Encoding: chunked\r\n\r\n4e20\r\n" + b"a" * 20_000 + b"\r\n"
START = {"type": "http.response.start", "status": 200, "headers": [(b"Content-Length", b"2")]}
END = {"type": "http.response.body", "body": b"ok"}


async def settled() -> None:
    """Until what has arrived was read and answered: turns of the loop, however long one takes."""
    for _ in range(20):
        await asyncio.sleep(0.001)


class Peer:
    """A client, and the connection of the server that it has; deadlines pass when it says so."""

    def __init__(self, connection: Connection, its_socket: socket.socket) -> None:
        self.connection, self.socket = connection, its_socket
        self.began = connection.loop.time()

    async def send(self, data: bytes) -> None:
        await self.connection.loop.sock_sendall(self.socket, data)
        await settled()

    async def after(self, seconds: float) -> list[WireAnswer] | None:
        """What has come so many seconds after its beginning; None: it was cut off, or closed."""
        for _ in range(3):  # what it finds unsent is given its own time
            self.connection.enforce_deadlines(self.began + seconds)
        await settled()
        received = b""
        try:
            while chunk := self.socket.recv(1 << 20):
                received += chunk
        except BlockingIOError:
            return answers_in(received)
        except ConnectionResetError:
            return None
        return answers_in(received) or None

    async def answer_after(self, seconds: float) -> WireAnswer:
        answers = await self.after(seconds)
        assert answers
        return answers[0]


def meet(scenario: Callable[[Peer], Awaitable[None]], application: Any = None) -> None:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send(START)
        await send(END)

    async def run() -> None:
        config = Config(application or answer, ws="none", log_config=None)
        config.load()
        ours, its = socket.socketpair()
        its.setblocking(False)
        loop = asyncio.get_running_loop()
        with its:
            _, connection = await loop.connect_accepted_socket(
                lambda: Connection(StartQueue(loop, ()), config, ServerState(), {}), ours
            )
            await scenario(Peer(connection, its))
            connection.abort()
            await asyncio.sleep(0)

    asyncio.run(run())


# --- Deadlines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "part", "seconds"),
    [
        (b"P", "headers", limits.HEADER_SECONDS),
        (POST, "headers", limits.HEADER_SECONDS),
        (POST + b"Content-Length: 5000\r\n\r\na", "body", limits.BODY_SECONDS),
        (CHUNKED, "body", limits.BODY_SECONDS),
    ],
    ids=["first line", "headers", "body", "chunks"],
)
def test_a_slow_request_is_answered_with_408(sent: bytes, part: str, seconds: float) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(sent)
        assert await peer.after(seconds - 0.1) == []
        answer = await peer.answer_after(seconds + 0.1)
        assert (answer.status, answer.reason) == (408, "invalid_request")
        assert f"its {part} took too long to arrive" in answer.json["error_description"]

    meet(scenario)


def test_a_head_is_refused_with_the_first_byte_that_is_too_much() -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(POST + b"A: " + b"a" * (limits.MAX_HEADER_BYTES - len(POST) - 3))
        assert await peer.after(0) == []
        await peer.send(b"a")
        assert (await peer.answer_after(0)).status == 400

    meet(scenario)


def test_a_large_upload_on_a_slow_line_has_a_second_more_for_each_16_kib() -> None:
    async def scenario(peer: Peer) -> None:
        part = b"a" * 16_384
        await peer.send(POST + b"Content-Length: %d\r\n\r\n" % (5 * len(part)))
        for _ in range(4):
            await peer.send(part)
        assert await peer.after(limits.BODY_SECONDS + 3.9) == []
        await peer.send(part)
        assert (await peer.answer_after(limits.BODY_SECONDS + 4)).status == 200

    meet(scenario)


@pytest.mark.parametrize(("sent", "count"), [(b"", 0), (GET, 1)])
@pytest.mark.parametrize("is_stopping", [False, True])
def test_an_idle_connection_is_closed_after_its_time(
    sent: bytes, count: int, is_stopping: bool
) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(sent) if sent else None
        peer.connection.shutdown() if is_stopping else None
        answers = await peer.after(seconds - 1)
        assert answers is not None
        assert len(answers) == count
        assert await peer.after(seconds + 1) is None

    seconds = limits.IDLE_SECONDS_WHEN_STOPPING if is_stopping else limits.IDLE_SECONDS
    meet(scenario)


@pytest.mark.parametrize(
    ("sent", "fault"),
    [(GET, ""), (GET + b"\0", "not HTTP/1.1"), (GET + b"GET /", "ended before it was complete")],
)
def test_a_client_that_stops_sending_gets_the_answers_that_are_still_to_come(
    sent: bytes, fault: str
) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(sent)
        peer.socket.shutdown(socket.SHUT_WR)
        await settled()
        may_answer.set()
        answers = await peer.after(0)
        assert answers
        refused = [a.json["error_description"] for a in answers[1:] if a.status == 400]
        assert answers[0].status == 200
        assert [fault in text for text in refused] == ([True] if fault else [])

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await may_answer.wait()
        await send(START)
        await send(END)

    may_answer = asyncio.Event()
    meet(scenario, late)


def test_a_connection_whose_last_answer_was_read_is_closed() -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(b"\0")
        assert not peer.connection.transport.is_closing()
        peer.socket.shutdown(socket.SHUT_WR)
        await settled()
        assert peer.connection.transport.is_closing()

    meet(scenario)


@pytest.mark.parametrize(("asked", "told"), [(b"close", b"keep-alive"), (b"keep-alive", b"close")])
def test_a_connection_stays_open_only_if_client_and_application_want_it(
    asked: bytes, told: bytes
) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(GET[:-2] + b"Connection: %b\r\n\r\n" % asked)
        assert b"\r\nConnection: close\r\n" in peer.socket.recv(1 << 16)
        assert peer.socket.recv(1) == b""

    async def telling(scope: Any, receive: Any, send: Any) -> None:
        await send(START | {"headers": [(b"Content-Length", b"2"), (b"Connection", told)]})
        await send(END)

    meet(scenario, telling)


@pytest.mark.parametrize("sent", [GET, UPLOAD], ids=["ended", "refused"])
def test_the_application_is_told_that_nothing_more_of_the_request_comes(sent: bytes) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(sent)
        peer.connection.abort() if sent == GET else await peer.send(b"no length")
        await settled()
        assert received == ["http.request", "http.disconnect"]

    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        received.extend([(await receive())["type"] for _ in range(2)])

    received: list[str] = []
    meet(scenario, waiting)


def test_the_proxy_closes_an_idle_connection_before_a_node_does() -> None:
    """A login is never sent into a connection that is closing."""
    text = CONFIGURATION.read_text()
    assert "    keepalive_timeout 4s;" in text
    assert limits.IDLE_SECONDS > limits.IDLE_SECONDS_WHEN_STOPPING > 4
    assert "client_body_timeout 15s;" in text
    assert limits.BODY_SECONDS < 15  # so that a slow body is answered


def test_a_login_that_had_to_wait_is_answered_before_its_proxy_gives_up() -> None:
    assert "        proxy_read_timeout 5s;" in CONFIGURATION.read_text()
    assert MAX_WAIT_SECONDS + CALL_SECONDS < 5


def test_a_client_that_does_not_read_its_answers_is_cut_off() -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(GET)
        peer.connection.enforce_deadlines(peer.began)
        assert not peer.connection.transport.is_closing()
        peer.connection.enforce_deadlines(peer.began + limits.WRITE_SECONDS + 0.1)
        assert peer.connection.transport.is_closing()

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send(START | {"headers": [(b"Content-Length", b"9000000")]})
        await send(END | {"body": b"a" * 9_000_000})

    meet(scenario, large)


def test_an_application_that_does_not_answer_is_a_503() -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(GET)
        assert await peer.after(limits.ANSWER_SECONDS - 1) == []
        assert (await peer.answer_after(limits.ANSWER_SECONDS + 1)).status == 503

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    meet(scenario, silent)


def test_a_crowd_begins_in_its_order_and_leaves_turns_to_those_in_progress() -> None:
    async def run() -> list[list[int]]:
        begun: list[int] = []
        queue = StartQueue(asyncio.get_running_loop(), begun)
        for number in range(75):
            queue.add(partial(begun.append, number))
        turns = [[*begun]]
        while len(begun) < 75:
            await asyncio.sleep(0)
            turns.append(begun[len([*chain(*turns)]) :])
        queue.add(partial(begun.append, 75))  # as many in progress as may be, none waits
        assert len(begun) == 75
        await asyncio.sleep(0)
        return [*turns, begun[75:]]

    numbers = [*range(76)]
    parts = [numbers[:64], numbers[64:68], numbers[68:72], numbers[72:75], numbers[75:]]
    assert asyncio.run(run()) == parts


def test_who_had_to_wait_too_long_is_told_so_and_reaches_no_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(GET)
        await peer.send(GET.replace(b"/x", LIVE.encode()))
        assert [answer.status for answer in await peer.after(0) or ()] == [503, 200]

    monkeypatch.setattr(connection, "MAX_WAIT_SECONDS", 0)
    meet(scenario)


# --- What the application sends -------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["\n", "\r", "\0", "a\r\nB: c", "\0b"])
def test_no_header_or_reason_of_an_answer_has_a_line_break_or_nul(wrong: str) -> None:
    text = f"x{wrong}".encode()
    for reason, header in ((text, (b"A", b"a")), (None, (text, b"a")), (None, (b"A", text))):
        with pytest.raises(InvalidHeader):
            head(200, reason, [(b"First", b"f"), header])
    assert head(200, None, [(b"A", b"a")]) == b"HTTP/1.1 200 OK\r\nA: a\r\n\r\n"


@pytest.mark.parametrize(
    ("headers", "sent"),
    [([(b"Content-Length", b"3")], b"abc"), ([], b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n")],
)
def test_a_body_has_its_length_or_comes_in_chunks(headers: Any, sent: bytes) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(GET)
        assert peer.socket.recv(1 << 16).partition(b"\r\n\r\n")[2] == sent

    async def in_parts(scope: Any, receive: Any, send: Any) -> None:
        await send(START | {"headers": headers})
        await send(END | {"body": b"a", "more_body": True})
        await send(END | {"body": b"bc"})

    meet(scenario, in_parts)


WHOLE = Answer(200, "OK", {"Content-Length": "2", "Link": "<https://例.org>"}, b"ok")
AS_MESSAGE = {"type": WHOLE_ANSWER, "answer": WHOLE}


@pytest.mark.parametrize("of", [(b"GET", 200, b"ok"), (b"HEAD", 200, b""), (b"GET", 304, b"")])
def test_a_whole_answer_has_its_headers_in_any_letters(of: tuple[bytes, int, bytes]) -> None:
    method, status, body = of
    head = f"HTTP/1.1 {status} OK\r\nContent-Length: 2\r\nLink: <https://例.org>\r\n".encode()

    async def scenario(peer: Peer) -> None:
        request = GET.replace(b"GET", method)
        await peer.send(request + request[:-2] + b"Connection: close\r\n\r\n")
        closing = head + b"Connection: close\r\n\r\n" + body
        assert peer.socket.recv(1 << 16) == head + b"\r\n" + body + closing

    async def whole(scope: Any, receive: Any, send: Any) -> None:
        await send(AS_MESSAGE | {"answer": replace(WHOLE, status=status)})

    meet(scenario, whole)


@pytest.mark.parametrize(
    "first",
    [
        START | {"headers": [(b"A", b"\0")]},
        AS_MESSAGE | {"answer": replace(WHOLE, headers={"A": "\n"})},
        AS_MESSAGE | {"answer": replace(WHOLE, reason="\r")},
        START,
    ],
)
def test_an_answer_that_cannot_be_written_is_a_500_and_nothing_of_it_is_sent(first: Any) -> None:
    async def scenario(peer: Peer) -> None:
        await peer.send(GET)
        answer = await peer.answer_after(0)
        assert (answer.status, answer.json["error"]) == (500, "server_error")

    async def wrong(scope: Any, receive: Any, send: Any) -> None:
        await send(first)
        await send(AS_MESSAGE)

    meet(scenario, wrong)


# --- Who accepts the next connection --------------------------------------------------------------


def test_a_process_with_fewer_connections_accepts_the_next_one() -> None:
    shared = ConnectionCounts()
    one, other = shared.take_slot(), shared.take_slot()
    shared.publish(one, 3)
    assert shared.has_more_than_another(one)
    assert not shared.has_more_than_another(other)
    assert shared.has_more_than_another(other, unpublished=4)
    shared.release_slot(other)
    assert not shared.has_more_than_another(one)
    assert shared.take_slot() == other


def test_a_process_that_stops_attracts_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = ConnectionCounts()  # of this test only: every process of a test publishes its count
    monkeypatch.setattr(worker, "counts", shared)
    process, busy = (
        Process(Config("identity.asgi:application"), shared.take_slot()),
        shared.take_slot(),
    )
    nothing: Any = SimpleNamespace(cancel=lambda: None, shutdown=lambda: asyncio.sleep(0))
    process.listeners, process.deadlines, process.lifespan = [], nothing, nothing
    process.closing = nothing
    shared.publish(busy, 20)
    some: Any = [object() for _ in range(30)]
    for one in some:
        process.server_state.connections.add(one)
    assert shared.has_more_than_another(process.slot)
    for one in some:
        process.server_state.connections.discard(one)
    assert shared.has_more_than_another(busy)
    asyncio.run(process.shutdown())
    process.server_state.connections.add(some[0])  # of its queue
    assert not shared.has_more_than_another(busy)
    assert shared.next_step(process.slot) == 1


TIN = "C1234567890"
STAFF_APPLICATIONS = {
    *("django.contrib.admin", "django.contrib.humanize", "django.contrib.messages", "allauth"),
    *("django.contrib.sessions", "django.contrib.staticfiles", "csp", "fido2", "identity.api"),
    *("identity.webhooks", "drf_spectacular", "identity.staff", "identity.staff_settings"),
    "identity.confirm",
    *("python_calamine", "qrcode", "unfold", "whitenoise", "xlsxwriter"),
}


def parents(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:length]) for length in range(1, len(parts) + 1)}


@pytest.mark.processes
def test_a_process_that_has_answered_a_login_has_imported_none_of_the_pages(
    migrated_sqlite: MigratedSqlite, tmp_path: Path
) -> None:
    migrated_sqlite.write_to(tmp_path / "identity.sqlite3")
    environment = service_environment(tmp_path, 0, SERVE="login")
    manage(environment, "register_taxpayer", TIN, "--name", "A company")
    issued = json.loads(manage(environment, "issue_credentials", TIN, "--name", "ERP", "--json"))
    program = ("-W", "error", "-m", "tests.support.login_worker")
    done = run_python([*program, issued["client_id"], issued["client_secret"]], environment)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == "200 OK"
    modules = set(answer["modules"])
    assert {name for name in modules if parents(name) & STAFF_APPLICATIONS} == set()
    of_developers = {name for name in modules if parents(name) & {"identity.developers"}}
    assert of_developers == {"identity.developers", "identity.developers.urls"}
    assert not modules & {"yaml", "jsonschema", "drf_spectacular"}
