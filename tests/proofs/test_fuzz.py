"""A short run with another seed each time; and each kind of fault is found."""

import json
import os
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from proofs.fuzz import planted as place
from proofs.fuzz.__main__ import SETTINGS
from proofs.fuzz.corpus import FuzzInput, Kind, read_inputs
from proofs.fuzz.invariants import faults_of
from proofs.fuzz.plant import plant
from proofs.fuzz.planted import Learned, Planted
from proofs.fuzz.run import Run, random_inputs
from proofs.fuzz.signed.signer import OTHER, RIGHT, encode
from proofs.fuzz.watch import Watch
from tests.conftest import StartService
from tests.servers.wire import WireAnswer

INPUTS = 5_000


def test_the_service_withstands_random_inputs(
    service: StartService, django_db_blocker: DjangoDbBlocker, tmp_path: Path
) -> None:
    node = service(**SETTINGS)
    # The clients are registered by this process, which must know the setting.
    with django_db_blocker.unblock(), override_settings(MTLS_URL=SETTINGS["MTLS_URL"]):
        planted = plant(node.url, node.manage)
    seed = random.randrange(1_000_000)  # noqa: S311 - a failure names it
    watch = Watch(node.pid, node.log_file, planted)
    run = Run(urlsplit(node.url).port or 0, watch, planted, seed, tmp_path / "failures.txt")
    rng = random.Random(seed)  # noqa: S311 - a run must be repeatable
    found = run.run(random_inputs(rng, planted, INPUTS), INPUTS, minutes=4)
    assert found.failures == [], "\n".join(found.failures)
    assert (found.sent, found.canaries > 10, found.tokens > 100) == (INPUTS, True, True), found
    assert {200, 400, 401, 404, 405, 408} <= set(found.statuses)


# --- What is wrong is found -----------------------------------------------------------------------

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


HEADERS = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "pragma": "no-cache",
    "correlationid": REFERENCE,
}
OWN = {"x-represented-taxpayer": "C1000000041"}
BASIC: dict[str, Any] = {"www-authenticate": 'Basic realm="identity", charset="UTF-8"'}
JTI, ME = "0123456789abcdef", "/api/v1/me"


def request(path: str, *lines: bytes, body: bytes = b"") -> FuzzInput:
    """Of the planted clients; placeholders are filled."""
    method = b"GET" if path.startswith("/api") else b"POST"
    head = b"\r\n".join([b"%b %b HTTP/1.1" % (method, path.encode()), b"Host: x", *lines])
    return FuzzInput((FIXED.fill(head + b"\r\n\r\n" + body),), Kind.FRAMED)


def refusal(status: int = 400, text: str = "Wrong.", **headers: Any) -> WireAnswer:
    body = {"error": "invalid_client", "error_description": f"{text} Reference: {REFERENCE}"}
    left = {name: value for name, value in (HEADERS | headers).items() if value is not None}
    return WireAnswer(status, "invalid_client", left, json.dumps(body).encode())


def token_of(client_id: bytes, kind: str = "Bearer", **claims: Any) -> WireAnswer:
    """A right answer with a token of this client, as far as the fuzzer reads it."""
    members = json.dumps({"client_id": client_id.decode()} | claims)
    token = b"e30." + encode(members.encode()) + b".x"
    body = {"access_token": token.decode(), "token_type": kind, "expires_in": 3600}
    return WireAnswer(200, "OK", HEADERS | OWN, json.dumps(body).encode())


LOGIN = request("/connect/token")
WITH_SECRET = request("/connect/token", body=place.CLIENT_SECRET)
INTROSPECT = request("/connect/introspect")
KEY = request("/connect/token", body=b"client_assertion=" + place.assertion(JTI))
BOUND = request("/connect/token", b"DPoP: " + place.proof(JTI), body=place.BOUND_SECRET)
CERTIFIED = request("/connect/token", b"SSL-Client-Verify: SUCCESS")
BEARER = request(ME, b"Authorization: Bearer <access_token>")
ANOTHER = request("/connect/token", b"On-Behalf-Of: C1", body=b"client_secret=<client_secret>")
TOKEN = token_of(FIXED.client_id)
KEY_TOKEN = token_of(FIXED.key_client_id)
BOUND_TOKEN = token_of(FIXED.bound_client_id, "DPoP", cnf={"jkt": RIGHT.thumbprint})
TLS_TOKEN = token_of(FIXED.tls_client_id, cnf={"x5t#S256": "x"})
ACCEPTED = WireAnswer(200, "OK", {"content-type": "application/json"}, b"{}")
API_REFUSAL = refusal(401, **(BASIC | {"www-authenticate": "Bearer error=x"}))
PAGE = WireAnswer(404, "Not Found", {"content-type": "text/html"}, b"<html>Traceback")
TWICE = "used before"


@pytest.mark.parametrize(
    ("sent", "right", "wrong", "fault"),
    [
        (LOGIN, refusal(), refusal(500), "status 500"),
        (request("/nothing"), ACCEPTED, PAGE, "a page where machines call"),
        (request("/admin/"), ACCEPTED, PAGE, "a debug page"),
        (LOGIN, refusal(), replace(refusal(), body=b"{"), "the body is no JSON"),
        (LOGIN, refusal(), replace(refusal(), reason="Bad Request"), "the reason phrase"),
        (LOGIN, refusal(), refusal(correlationid=None), "correlationId"),
        (
            LOGIN,
            refusal(),
            refusal(400, **(BASIC | {"www-authenticate": None, "set-cookie": "x"})),
            "a header set-cookie",
        ),
        (LOGIN, refusal(), refusal(text=FIXED.wrong_secret[10:45].decode()), "sends back"),
        (INTROSPECT, refusal(401, **BASIC), refusal(401), "401 with the challenge"),
        (replace(WITH_SECRET, is_canary=True), TOKEN, refusal(), "a right login gets 400"),
        (WITH_SECRET, TOKEN, token_of(b"ci_test_of_nobody"), "a token of nobody"),
        (WITH_SECRET, TOKEN, replace(TOKEN, headers=HEADERS), "a token for nobody"),
        (WITH_SECRET, TOKEN, token_of(FIXED.client_id, "DPoP"), "a token of the type DPoP"),
        (LOGIN, refusal(), TOKEN, "a token without the right secret"),
        (KEY, KEY_TOKEN, KEY_TOKEN, TWICE),
        (BOUND, BOUND_TOKEN, BOUND_TOKEN, TWICE),
        (CERTIFIED, TLS_TOKEN, token_of(FIXED.tls_client_id), "a token for a certificate"),
        (
            BOUND,
            BOUND_TOKEN,
            token_of(FIXED.bound_client_id, "DPoP", cnf={"jkt": OTHER.thumbprint}),
            "a bound token without a right proof",
        ),
        (ANOTHER, refusal(), TOKEN, "a token in spite of a misspelled onbehalfof"),
        (BEARER, ACCEPTED, replace(ACCEPTED, status=418), "status 418 of an API"),
        (request(ME), API_REFUSAL, ACCEPTED, "an API has accepted what is no right token"),
    ],
)
def test_a_wrong_answer_is_found_and_a_right_one_is_none(
    sent: FuzzInput, right: WireAnswer, wrong: WireAnswer, fault: str
) -> None:
    planted = replace(FIXED, learned=Learned())
    assert list(faults_of(sent, right, planted)) == []
    assert any(fault in found for found in faults_of(sent, wrong, planted))


HEAD = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n"


@contextmanager
def server_that_answers_twice() -> Iterator[int]:
    """Then it closes the connection, even if three requests were sent."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            while True:
                connection, _ = listening.accept()
                with connection:
                    data = b""
                    while data.count(b"\r\n\r\n") < 3:
                        data += connection.recv(65536)
                    connection.sendall((HEAD + b"{}") * 2)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]


def test_a_missing_answer_is_found_stored_without_credentials_and_found_again(
    tmp_path: Path,
) -> None:
    """With what was sent before it on the same connection, which may be the cause."""
    stored = tmp_path / "stored.txt"
    stored.touch()
    other = request("/nothing")
    inputs = [request("/nothing", FIXED.client_secret), other, other]

    def failures_of(port: int, inputs: list[FuzzInput]) -> list[str]:
        run = Run(port, Watch(os.getpid(), stored, FIXED), FIXED, 7, stored)
        return run.run(iter(inputs), len(inputs), minutes=1).failures

    with server_that_answers_twice() as port:
        assert "closed without an answer" in "".join(failures_of(port, inputs))
        assert FIXED.client_secret not in stored.read_bytes()
        again = list(read_inputs(stored, FIXED))
        assert [one.data for one in again] == [one.data for one in inputs]
        assert "closed without an answer" in "".join(failures_of(port, again))


def test_a_worker_that_was_replaced_and_a_secret_in_the_log_are_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    watch = Watch(os.getpid(), log, FIXED)
    assert watch.look() == []
    watch.workers = [1]
    log.write_bytes(b"first\n" + FIXED.client_secret[12:50] + b"\nlast\n")
    replaced, *written = watch.look()
    assert "the workers were [1]" in replaced
    assert "the log has" in written[0]
