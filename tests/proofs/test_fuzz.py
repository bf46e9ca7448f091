"""A small run with another seed each time, and Hypothesis; and what a run would find."""

import json
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import override_settings
from hypothesis import given, settings

from proofs.fuzz import planted as place
from proofs.fuzz import traffic
from proofs.fuzz.__main__ import SETTINGS
from proofs.fuzz.corpus import FuzzInput, Kind, read_corpus, read_inputs, write_inputs
from proofs.fuzz.invariants import faults_of
from proofs.fuzz.plant import plant
from proofs.fuzz.planted import ACCESS_TOKEN, CLIENT_ID, CLIENT_SECRET, Learned, Planted, basic
from proofs.fuzz.run import Run, random_inputs
from proofs.fuzz.signed.signer import OTHER as OTHER_KEY
from proofs.fuzz.signed.signer import RIGHT as RIGHT_KEY
from proofs.fuzz.signed.signer import encode
from proofs.fuzz.strategies import filled, requests
from proofs.fuzz.watch import Watch
from tests.conftest import StartService
from tests.servers.service import Service
from tests.servers.wire import WireAnswer

INPUTS = 5_000
REFERENCE = "0193a5c0-7b1e-7c44-9d3f-2b1a5e6f7081"
FIXED = Planted(
    client_id=b"ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn",
    client_secret=b"cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0",
    wrong_secret=b"cs_test_0FJBkbGyq4pTtOa6JYGHlAiVG85qYaSu0bcGaVHvOOz3X6jIZ",
    access_token=b"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJDMSJ9.3q2-7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs",
    represented=b"C1000000049",
    spare_token=b"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJDMiJ9.4q2-7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs",
    key_client_id=b"ci_test_8lmqToiYlcJNiFW0w5ce5U1kLdBn",
    bound_client_id=b"ci_test_9lmqToiYlcJNiFW0w5ce5U1kLdBn",
    bound_secret=b"cs_test_7GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0",
    bound_token=b"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJDMyJ9.5q2-7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs",
    tls_client_id=b"ci_test_6lmqToiYlcJNiFW0w5ce5U1kLdBn",
    issuer="http://127.0.0.1:8000",
    clock=lambda: 1_800_000_000.0,
    learned=Learned(nonce="a-nonce"),
)


def planted_at(node: Service) -> Planted:
    """The clients of a run; they are registered by this process, which must know the setting."""
    with override_settings(MTLS_URL=SETTINGS["MTLS_URL"]):
        return plant(node.url, node.manage)


def test_the_service_withstands_random_inputs(service: StartService, tmp_path: Path) -> None:
    node = service(**SETTINGS)
    planted = planted_at(node)
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
    return planted_at(node)


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
        lambda one, answer, _sent: faults.extend(faults_of(one, answer, planted)),
        lambda _one, fault, _sent: faults.append(fault),
        random.Random(0),  # noqa: S311 - of addresses
    ).run(lambda: True)
    return faults


# --- What is wrong is found -----------------------------------------------------------------------


def issued_to(client_id: bytes, **claims: Any) -> bytes:
    """A token, as far as the fuzzer reads it."""
    members = {"client_id": client_id.decode()} | claims
    return b"e30." + encode(json.dumps(members).encode()) + b".x"


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
    b'{"access_token": "%b", "token_type": "Bearer", "expires_in": 3600}'
    % issued_to(FIXED.client_id),
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
            replace(TOKEN, body=TOKEN.body.replace(b".x", b".x" + FIXED.access_token)),
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


def framed(path: str, *lines: bytes, body: bytes = b"") -> FuzzInput:
    """A request of the planted clients; placeholders are filled."""
    method = b"GET" if path.startswith("/api") else b"POST"
    head = b"\r\n".join([b"%b %b HTTP/1.1" % (method, path.encode()), b"Host: x", *lines])
    return FuzzInput((FIXED.fill(head + b"\r\n\r\n" + body),), Kind.FRAMED)


def with_token(
    client_id: bytes, token_type: bytes = b"Bearer", bound_to: dict[str, str] | None = None
) -> WireAnswer:
    """A right answer with a token of this client."""
    token = issued_to(client_id, **({"cnf": bound_to} if bound_to else {}))
    body = b'{"access_token": "%b", "token_type": "%b", "expires_in": 3600}' % (token, token_type)
    return replace(TOKEN, body=body)


JTI = "0123456789abcdef"
ME = "/api/v1/me"
KEY = framed("/connect/token", body=b"client_assertion=" + place.assertion(JTI))
BOUND = framed("/connect/token", b"DPoP: " + place.proof(JTI), body=place.BOUND_SECRET)
CERTIFIED = framed("/connect/token", b"SSL-Client-Verify: SUCCESS")
BEARER = framed(ME, b"Authorization: Bearer <access_token>")
POSSESSED = framed(
    ME, b"Authorization: DPoP <bound_token>", b"DPoP: " + place.proof(JTI, ME.encode())
)
ACCEPTED = WireAnswer(200, "OK", {"content-type": "application/json"}, b"{}")


@pytest.mark.parametrize(
    ("sent", "answer", "fault"),
    [
        (RIGHT, with_token(b"ci_test_of_nobody"), "a token of nobody"),
        (RIGHT, with_token(FIXED.client_id, token_type=b"DPoP"), "a token of the type DPoP"),
        (KEY, with_token(FIXED.key_client_id), ""),
        (RIGHT, with_token(FIXED.key_client_id), "a token without a right assertion"),
        (
            BOUND,
            with_token(FIXED.bound_client_id, b"DPoP", bound_to={"jkt": RIGHT_KEY.thumbprint}),
            "",
        ),
        (
            replace(BOUND, parts=(BOUND.data.replace(FIXED.bound_secret, b"x"),)),
            with_token(FIXED.bound_client_id, b"DPoP", bound_to={"jkt": RIGHT_KEY.thumbprint}),
            "a bound token without the right secret",
        ),
        (
            BOUND,
            with_token(FIXED.bound_client_id, b"DPoP", bound_to={"jkt": OTHER_KEY.thumbprint}),
            "a bound token without a right proof",
        ),
        (
            BOUND,
            with_token(FIXED.bound_client_id, bound_to={"jkt": RIGHT_KEY.thumbprint}),
            "a token of the type Bearer bound to ['jkt']",
        ),
        (CERTIFIED, with_token(FIXED.tls_client_id, bound_to={"x5t#S256": "x"}), ""),
        (CERTIFIED, with_token(FIXED.tls_client_id), "a token for a certificate"),
        (
            replace(CERTIFIED, is_outside=True),
            with_token(FIXED.tls_client_id, bound_to={"x5t#S256": "x"}),
            "a token for a certificate",
        ),
        (BEARER, ACCEPTED, ""),
        (replace(BEARER, parts=(BEARER.data[:-20],)), ACCEPTED, "an API has accepted what is no"),
        (POSSESSED, ACCEPTED, ""),
        (
            replace(POSSESSED, parts=(POSSESSED.data.replace(b"DPoP: ", b"X: x"),)),
            ACCEPTED,
            "an API has accepted a bound token",
        ),
        (BEARER, replace(ACCEPTED, status=401), "an API refuses with"),
        (BEARER, replace(ACCEPTED, status=401), "401 with the challenge ''"),
        (BEARER, replace(ACCEPTED, status=418), "status 418 of an API"),
    ],
)
def test_whoever_gets_a_token_has_proved_who_it_is(
    sent: FuzzInput, answer: WireAnswer, fault: str
) -> None:
    planted = replace(FIXED, learned=Learned())
    found = list(faults_of(sent, answer, planted))
    if fault:
        assert any(one.startswith(fault) for one in found), found
    else:
        assert found == []
        again = list(faults_of(sent, answer, planted))
        assert bool(again) == (sent in (KEY, BOUND, POSSESSED))  # which count once
        later = replace(planted, clock=lambda: FIXED.clock() + 111)
        assert list(faults_of(sent, answer, later)) == []  # as long as they are stored


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


def test_what_comes_from_outside_comes_from_no_trusted_proxy() -> None:
    trusted = ip_network(traffic.TRUSTED)
    for is_outside in (False, True):
        peers: list[str] = []

        def remember(connection: socket.socket, peers: list[str] = peers) -> None:
            peers.append(connection.getpeername()[0])

        with server_that(remember) as port:
            faults_at(port, replace(OTHER, is_outside=is_outside))
        assert (ip_address(peers[0]) in trusted) is not is_outside


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


class TwoAnswers:
    """A server that answers two requests of a connection and closes it, even if there are three."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            with connection:
                data = connection.recv(65536)
                while data.count(b"\r\n\r\n") < (3 if b"/cause" in data else 2):
                    data += connection.recv(65536)
                self.received.append(data)
                connection.sendall((HEAD + b"{}") * 2)


def test_what_was_sent_on_the_connection_of_a_failure_is_stored_and_sent_again_on_one(
    tmp_path: Path,
) -> None:
    """An earlier request may be the cause: one whose body has no end, for example."""
    server, stored = TwoAnswers(), tmp_path / "stored.txt"
    stored.touch()
    sent = [
        replace(OTHER, parts=(OTHER.data.replace(b"/nothing", path),))
        for path in (b"/cause", b"/between", b"/not-answered")
    ]

    def failures_of(inputs: list[FuzzInput]) -> list[str]:
        run = Run(server.port, Watch(os.getpid(), stored, FIXED), FIXED, 7, stored)
        return run.run(iter(inputs), len(inputs), minutes=1).failures

    (failure,) = failures_of(sent)
    assert "closed without an answer" in failure
    again = list(read_inputs(stored, FIXED))
    assert [one.data for one in again] == [one.data for one in sent]
    assert {one.connection for one in again} == {"7-0"}
    assert again[2].name == "closed without an answer"
    assert len(failures_of([again[0], OTHER, *again[1:], OTHER])) == 1
    # The others have another connection.
    assert sorted(server.received)[:2] == [b"".join(one.data for one in sent)] * 2
    assert len(server.received) == 3


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
    for secret in (FIXED.client_secret, FIXED.wrong_secret, FIXED.access_token, FIXED.bound_token):
        assert secret not in stored
    for placeholder in (CLIENT_ID, CLIENT_SECRET, ACCESS_TOKEN, b"<assertion.", b"<proof."):
        assert placeholder in stored
