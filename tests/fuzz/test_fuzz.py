"""A small run with another seed each time, and Hypothesis; and what a run would find."""

import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings

from tests.conftest import StartService
from tests.fuzz import traffic
from tests.fuzz.__main__ import SETTINGS
from tests.fuzz.corpus import FuzzInput, Kind, read_corpus, read_inputs, write_inputs
from tests.fuzz.invariants import faults_of
from tests.fuzz.planted import ACCESS_TOKEN, CLIENT_ID, CLIENT_SECRET, Planted, basic, plant
from tests.fuzz.run import Run, random_inputs
from tests.fuzz.strategies import filled, requests
from tests.fuzz.watch import Watch
from tests.servers.service import Service
from tests.servers.wire import WireAnswer

INPUTS = 5_000
REFERENCE = "0193a5c0-7b1e-7c44-9d3f-2b1a5e6f7081"
FIXED = Planted(
    b"ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn",
    b"cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0",
    b"cs_test_0FJBkbGyq4pTtOa6JYGHlAiVG85qYaSu0bcGaVHvOOz3X6jIZ",
    b"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJDMSJ9.3q2-7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs",
    b"C1000000049",
)


def test_the_service_withstands_random_inputs(service: StartService, tmp_path: Path) -> None:
    node = service(**SETTINGS)
    planted = plant(node.url, node.manage)
    seed = random.randrange(1_000_000)  # noqa: S311 - a failure names it
    watch = Watch(node.pid, node.log_file, planted)
    run = Run(urlsplit(node.url).port or 0, watch, planted, seed, tmp_path / "failures.txt")
    rng = random.Random(seed)  # noqa: S311 - a run must be repeatable
    found = run.run(random_inputs(rng, planted, INPUTS), INPUTS, minutes=4)
    assert found.failures == [], "\n".join(found.failures)
    assert (found.sent, found.canaries > 10, found.tokens > 100) == (INPUTS, True, True), found
    assert {200, 400, 401, 404, 405, 408} <= set(found.statuses)


@pytest.fixture(scope="module")
def planted(node: Service) -> Planted:
    return plant(node.url, node.manage)


@given(requests())
@settings(max_examples=150, deadline=None)
def test_every_request_of_any_text_gets_an_answer_of_the_contract(
    node: Service, planted: Planted, one: FuzzInput
) -> None:
    assert faults_at(urlsplit(node.url).port or 0, filled(one, planted), planted) == []


def faults_at(port: int, one: FuzzInput, planted: Planted = FIXED) -> list[str]:
    faults: list[str] = []
    traffic.Traffic(
        port,
        iter([one]),
        lambda sent, answer: faults.extend(faults_of(sent, answer, planted)),
        lambda _, fault: faults.append(fault),
        random.Random(0),  # noqa: S311 - of addresses
    ).run(lambda: True)
    return faults


# --- What is wrong is found -----------------------------------------------------------------------

LOGIN_HEADERS = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "pragma": "no-cache",
    "correlationid": REFERENCE,
}
REFUSAL = WireAnswer(
    400,
    "invalid_client",
    LOGIN_HEADERS,
    b'{"error": "invalid_client", "error_description": "Wrong. Reference: %b"}'
    % REFERENCE.encode(),
)
OWN = {"x-represented-taxpayer": "C1000000041"}
TOKEN = WireAnswer(
    200,
    "OK",
    LOGIN_HEADERS | OWN,
    b'{"access_token": "a.b.c", "token_type": "Bearer", "expires_in": 3600}',
)
LOGIN = FuzzInput((b"POST /connect/token HTTP/1.1\r\nHost: x\r\n\r\n",), Kind.FRAMED)
RIGHT = replace(LOGIN, parts=(LOGIN.data + FIXED.client_secret,))
INTROSPECT = FuzzInput((b"POST /connect/introspect HTTP/1.1\r\nHost: x\r\n\r\n",), Kind.FRAMED)
CHALLENGED = LOGIN_HEADERS | {"www-authenticate": 'Basic realm="identity", charset="UTF-8"'}
UNKNOWN = replace(REFUSAL, status=401, headers=CHALLENGED)
OTHER = FuzzInput((b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n",), Kind.FRAMED)
PAGE = WireAnswer(404, "Not Found", {"content-type": "text/html"}, b"<html>")


def without(answer: WireAnswer, name: str) -> WireAnswer:
    return replace(answer, headers={k: v for k, v in answer.headers.items() if k != name})


@pytest.mark.parametrize(
    ("sent", "answer"), [(LOGIN, REFUSAL), (RIGHT, TOKEN), (INTROSPECT, UNKNOWN)]
)
def test_a_right_answer_is_no_fault(sent: FuzzInput, answer: WireAnswer) -> None:
    assert list(faults_of(sent, answer, FIXED)) == []


@pytest.mark.parametrize(
    ("sent", "answer", "fault"),
    [
        (OTHER, replace(PAGE, status=500), "status 500"),
        (OTHER, PAGE, "a page where machines call"),
        (OTHER, replace(PAGE, headers={}), "a page where machines call"),
        (LOGIN, PAGE, "a page where machines call"),
        (replace(OTHER, parts=(b"GET /admin/",)), replace(PAGE, body=b"Traceback"), "a debug page"),
        (LOGIN, replace(REFUSAL, body=b"{"), "the body is no JSON"),
        (LOGIN, replace(REFUSAL, body=b"[]"), "a refusal with the body"),
        (LOGIN, without(REFUSAL, "correlationid"), "correlationId"),
        (LOGIN, without(REFUSAL, "cache-control"), "cache-control"),
        (LOGIN, without(REFUSAL, "pragma"), "pragma"),
        (LOGIN, replace(REFUSAL, headers=LOGIN_HEADERS | {"www-authenticate": "x"}), "a header"),
        (LOGIN, replace(REFUSAL, headers=LOGIN_HEADERS | {"set-cookie": "x"}), "a header"),
        (LOGIN, replace(REFUSAL, reason="Bad Request"), "the reason phrase"),
        (LOGIN, replace(REFUSAL, status=401), "status 401"),
        (INTROSPECT, replace(REFUSAL, status=401), "401 with the challenge"),
        (INTROSPECT, replace(UNKNOWN, status=400), "400 with the challenge"),
        (INTROSPECT, replace(UNKNOWN, status=403), "status 403"),
        (INTROSPECT, without(UNKNOWN, "correlationid"), "correlationId"),
        (INTROSPECT, without(UNKNOWN, "cache-control"), "cache-control"),
        (INTROSPECT, replace(TOKEN, body=b'{"active": true}'), "a token that is not ours"),
        (LOGIN, replace(REFUSAL, status=503), "503 with invalid_client"),
        (LOGIN, replace(REFUSAL, body=REFUSAL.body.replace(b" Ref", b"Ref")), "the description"),
        (LOGIN, TOKEN, "a token without the right secret"),
        (RIGHT, replace(TOKEN, body=b"{}"), "200 without a token"),
        (RIGHT, replace(TOKEN, body=TOKEN.body.replace(b"3600", b"36")), "a token with"),
        (
            RIGHT,
            replace(TOKEN, body=TOKEN.body.replace(b"a.b.c", FIXED.access_token)),
            "sends back",
        ),
        (
            LOGIN,
            replace(REFUSAL, body=REFUSAL.body.replace(b"Wrong", FIXED.wrong_secret[10:45])),
            "sends back",
        ),
        (replace(LOGIN, is_canary=True), REFUSAL, "a right login gets 400"),
    ],
)
def test_a_wrong_answer_is_found(sent: FuzzInput, answer: WireAnswer, fault: str) -> None:
    assert any(found.startswith(fault) for found in faults_of(sent, answer, FIXED))


def with_lines(*lines: bytes, body: bytes = b"") -> FuzzInput:
    """The right login with more headers, and with more of a body."""
    head = LOGIN.data.removesuffix(b"\r\n") + b"".join(line + b"\r\n" for line in lines)
    return replace(LOGIN, parts=(head + b"\r\n", b"client_secret=" + FIXED.client_secret + body))


FOR_OTHER = replace(TOKEN, headers=LOGIN_HEADERS | {"x-represented-taxpayer": "C1000000049"})
AS_QUERY = replace(LOGIN, parts=(RIGHT.data.replace(b"/token", b"/token?a=b&on%62ehalfof=C1"),))
IN_TRAILER = with_lines(b"Transfer-Encoding: chunked", body=b"\r\n0\r\nonbehalfof: C1\r\n\r\n")


@pytest.mark.parametrize(
    ("sent", "answer", "fault"),
    [
        (RIGHT, without(TOKEN, "x-represented-taxpayer"), "a token for nobody"),
        *(
            (with_lines(name + b": C1000000049"), FOR_OTHER, "in spite of a misspelled onbehalfof")
            for name in (b"On-Behalf-Of", b"X_onbehalfof", b"onbehalfof ", b"onbehalf\0")
        ),
        (with_lines(b"OnBehalfOf: C1000000049"), TOKEN, "for C1000000041 in spite of onbehalfof"),
        (with_lines(body=b"&onbehalfof=C1"), TOKEN, "outside the headers"),
        (AS_QUERY, TOKEN, "outside the headers"),
        (IN_TRAILER, TOKEN, "outside the headers"),
    ],
)
def test_a_token_for_oneself_in_spite_of_onbehalfof_is_found(
    sent: FuzzInput, answer: WireAnswer, fault: str
) -> None:
    (found,) = faults_of(sent, answer, FIXED)
    assert fault in found


@pytest.mark.parametrize(
    "data",
    [
        FIXED.client_secret,
        b"".join(b"%%%02x" % byte for byte in FIXED.client_secret),
        b"Authorization: Basic " + basic(FIXED.client_id, FIXED.client_secret),
        b"\r\n\r\n14\r\n" + FIXED.client_secret[:20] + b"\r\n25\r\n" + FIXED.client_secret[20:],
    ],
)
def test_a_right_secret_is_recognised_however_it_is_sent(data: bytes) -> None:
    assert FIXED.has_right_secret(data)
    assert not FIXED.has_right_secret(data[:-1])


@contextmanager
def server_that(answers: Callable[[socket.socket], object]) -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                answers(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(5)


HEAD = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        (lambda _: None, "closed without an answer"),
        (lambda connection: connection.sendall(HEAD), "closed within an answer"),
        (lambda connection: connection.sendall(HEAD + b"{}HTTP/1.1 4"), "not an answer: unasked"),
        (lambda connection: connection.sendall(b"SSH-2.0\r\n"), "not an answer"),
        (lambda connection: connection.recv(1), "no answer in time"),
    ],
    ids=["silence", "cut off", "too much", "not HTTP", "too late"],
)
@pytest.mark.parametrize("kind", [Kind.FRAMED, Kind.OPEN])
def test_a_wrong_behaviour_is_found(
    answers: Callable[[socket.socket], object],
    fault: str,
    kind: Kind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if fault == "not an answer: unasked" and kind is Kind.OPEN:
        fault = "closed within an answer"  # others may follow there
    monkeypatch.setattr(traffic, "_ANSWER_SECONDS", 1.5)
    monkeypatch.setattr(traffic, "_OPEN_SECONDS", 1.5)
    with server_that(answers) as port:
        (found,) = faults_at(port, replace(OTHER, kind=kind))
    assert found.startswith(fault)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"traceback": "x"}', "traceback"),
        (b"Traceback (most recent call last):", "Traceback"),
        (b"Fatal Python error: Segmentation fault", "Fatal"),
        (FIXED.client_secret[12:50], "the log has"),
        (FIXED.wrong_secret[20:], "the log has"),
        (b'{"outcome": "issued"}', ""),
        (b'{"message": "login failed", "error": "lanes.TooLate: no answer"}', ""),
        (b'{"message": "login failed", "error": "UniqueViolation"}', "login failed"),
    ],
)
def test_what_must_not_be_in_the_log_is_found(line: bytes, fault: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"Traceback (most recent call last): before the run\n")
    watch = Watch(os.getpid(), log, FIXED)
    with log.open("ab") as output:
        output.write(b"first\n" + line + b"\nlast\n")
    found = "".join(watch.look())
    assert fault in found
    assert bool(found) == bool(fault)
    assert watch.look() == []


def test_a_worker_that_was_replaced_is_found(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    watch = Watch(os.getpid(), tmp_path / "log", FIXED)
    watch.workers = [1]
    assert "the workers were [1]" in watch.look()[0]


# --- Inputs ---------------------------------------------------------------------------------------


def test_a_seed_repeats_its_inputs() -> None:
    first, again, other = (
        list(random_inputs(random.Random(seed), FIXED, 2_000))  # noqa: S311 - repeatable
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert {one.kind for one in first} == set(Kind)


def test_a_stored_input_is_read_back_and_holds_no_credentials(tmp_path: Path) -> None:
    inputs = [*read_corpus(FIXED), *random_inputs(random.Random(3), FIXED, 1_000)]  # noqa: S311
    write_inputs(tmp_path / "stored.txt", inputs, FIXED)
    assert list(read_inputs(tmp_path / "stored.txt", FIXED)) == [
        replace(one, is_canary=False) for one in inputs
    ]
    stored = (tmp_path / "stored.txt").read_bytes()
    for secret in (FIXED.client_secret, FIXED.wrong_secret, FIXED.access_token):
        assert secret not in stored
    for placeholder in (CLIENT_ID, CLIENT_SECRET, ACCESS_TOKEN):
        assert placeholder in stored
