"""One message over real sockets: to receivers that behave well or not; when it is tried again."""

import base64
import itertools
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from identity.webhooks.destination import Destination, NotAllowed, check_host, is_allowed, read_url
from identity.webhooks.secret_storage import new_secret, signed_headers
from identity.webhooks.sending import http_client
from identity.webhooks.sending.attempts import (
    MOST_ATTEMPTS,
    Outcome,
    next_attempt,
    pause_until,
    retry_after,
)
from identity.webhooks.sending.http_client import post
from tests.servers.processes import slowness
from tests.webhooks.receiver import OK, Answer, receiving, status, write_certificate

LOOPBACK = ["127.0.0.0/8"]
HEADERS = {"Content-Type": "application/json", "webhook-id": "msg_1"}


def sent_to(*answers: bytes | Answer, seconds: float = 20.0) -> Outcome:
    with receiving(*answers) as receiver:
        outcome = post(receiver.url, HEADERS, b"{}", allowed_networks=LOOPBACK, seconds=seconds)
        assert len(receiver.received) == 1
    return outcome


def test_a_message_is_posted_with_its_headers() -> None:
    with receiving() as receiver:
        outcome = post(receiver.url, HEADERS, b'{"a":1}', allowed_networks=LOOPBACK)
        (request,) = receiver.received
    assert (outcome, request.line) == (Outcome(204), "POST /hooks?a=1 HTTP/1.1")
    assert request.body == b'{"a":1}'
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-length"] == "7"
    assert HEADERS.items() <= {**request.headers, "Content-Type": "application/json"}.items()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        *((status(code), Outcome(code)) for code in (200, 204, 299, 400, 410, 500)),
        (status(429, "Retry-After: 17"), Outcome(429, retry_after="17")),
        (b"", Outcome(fault="connection lost")),
        (b"\x16\x03\x01nonsense\r\n\r\n", Outcome(fault="the answer is no HTTP")),
    ],
    ids=str,
)
def test_the_outcome_is_the_status_or_the_fault(answer: bytes, outcome: Outcome) -> None:
    assert sent_to(answer) == outcome


HOSTILE = [
    status(503, "Retry-After: Mon, 01 Jan 2026 00:00:00 +99999999999999999999"),
    status(429, "Retry-After: " + "9" * 60_000),
    status(503, "Retry-After: \xff\x00=?utf-8?b?////?="),
    b"HTTP/1.1 " + b"9" * 5_000 + b" X\r\n\r\n",
    b"HTTP/1.1 -01 X\r\n\r\n",
    b"HTTP/9.9 500 " + b"\xff" * 60_000 + b"\r\n\r\n",
    b"HTTP/1.1 500 X\r\nContent-Length: " + b"9" * 9_000 + b"\r\n\r\n",
    b"HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 9_000 + b"\r\n",
    b"HTTP/1.1 500 X\r\n: \r\n \x00\r\nX\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x00\xff",
    b"HTTP/1.1 302 Found\r\nLocation: \x00://[::1\r\n\r\n",
    b"\x15\x03\x01\x00\x02\x02\x28",
    b"\r\n\r\n",
]


@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_receiver_answers_is_one_failed_attempt(answer: bytes) -> None:
    outcome = sent_to(answer)
    assert not outcome.is_success
    assert timedelta(0) <= retry_after(outcome, AT) <= timedelta(days=1)


def test_a_redirect_is_not_followed() -> None:
    with receiving() as inner:
        outcome = sent_to(status(307, f"Location: {inner.url}"))
        metadata = sent_to(status(302, "Location: http://169.254.169.254/latest/meta-data/"))
        assert inner.received == []
    assert (outcome.status, metadata.status) == (307, 302)
    assert not outcome.is_success


def hang(line: socket.socket) -> None:
    line.recv(1)  # until the other side has had enough


def headers_without_an_end(line: socket.socket) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        line.sendall(f"X-{number}: {'x' * 100}\r\n".encode())


def one_byte_now_and_then(line: socket.socket) -> None:
    for _ in range(900):
        line.sendall(b"H")
        time.sleep(0.01)


def late(line: socket.socket) -> None:
    time.sleep(0.3)
    line.sendall(OK)


def continue_for_ever(line: socket.socket) -> None:
    while True:
        line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def body_without_an_end(line: socket.socket) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        line.sendall(b"x" * 65_536)


NO_ANSWER, NO_HTTP = (Outcome(fault=f) for f in ("no answer in time", "the answer is no HTTP"))


@pytest.mark.parametrize(
    ("answer", "outcomes"),
    [
        *((hang, [NO_ANSWER]), (continue_for_ever, [NO_ANSWER])),
        (one_byte_now_and_then, [NO_ANSWER, NO_HTTP]),
        (headers_without_an_end, [NO_HTTP, NO_ANSWER]),
    ],
)
def test_a_receiver_that_does_not_end_its_answer_is_left_in_time(
    answer: Answer, outcomes: list[Outcome]
) -> None:
    began = time.monotonic()
    assert sent_to(answer, seconds=0.3) in outcomes
    assert time.monotonic() - began < 4 * slowness()


def test_a_body_without_an_end_is_not_read() -> None:
    began = time.monotonic()
    assert sent_to(body_without_an_end, seconds=60) == Outcome(200)
    assert time.monotonic() - began < 10 * slowness()
    # One that goes off later would end whatever has the number of its socket then.
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_a_port_without_a_listener_is_a_fault(nowhere: str) -> None:
    outcome = post(nowhere, {}, b"", allowed_networks=LOOPBACK)
    assert outcome == Outcome(fault="connection refused")


def test_a_host_must_accept_quickly_and_may_answer_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_CONNECT_SECONDS", 0.1)
    assert sent_to(late) == Outcome(204)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        place = full.getsockname()
        with socket.create_connection(place):  # the queue has no room left
            assert post(f"http://127.0.0.1:{place[1]}/", {}, b"", allowed_networks=LOOPBACK) == (
                NO_ANSWER
            )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::1]"])
def test_an_address_of_this_machine_is_refused_when_it_is_connected_to(host: str) -> None:
    with receiving() as receiver:
        url = f"https://{host}:{receiver.port}/"
        outcome = post(url, {}, b"", allowed_networks=["10.0.0.0/8"])
        assert receiver.received == []
    assert outcome.fault in (
        "not allowed: the address of the host is not public",
        "the host has no address",
    )


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that means something else at each look-up (DNS rebinding)."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: str, port: int, *more: object, **options: int) -> object:
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "169.254.169.254", port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with receiving() as receiver:
        url = f"http://rebinding.example:{receiver.port}/"
        assert post(url, {}, b"", allowed_networks=LOOPBACK) == Outcome(204)
    assert asked == ["rebinding.example"]


@pytest.mark.parametrize("url", ["nonsense", "https://u@h/", f"https://{'x' * 70}.example/"])
def test_a_url_that_became_wrong_is_a_fault(url: str) -> None:
    assert post(url, {}, b"", allowed_networks=LOOPBACK).fault


def test_the_certificate_of_the_receiver_is_checked_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path)
    its_own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    its_own.load_cert_chain(certificate)
    with receiving(OK, one_byte_now_and_then, tls=its_own) as receiver:
        url, address = (f"https://{name}:{receiver.port}/" for name in ("localhost", "127.0.0.1"))
        unknown = post(url, {}, b"{}", allowed_networks=LOOPBACK)
        assert unknown == Outcome(fault="TLS failed: CERTIFICATE_VERIFY_FAILED")
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(http_client, "_tls", lambda: trusting)
        assert post(url, {}, b"{}", allowed_networks=LOOPBACK) == Outcome(204)
        began = time.monotonic()
        slow = post(url, {}, b"{}", allowed_networks=LOOPBACK, seconds=slowness())
        assert slow in (NO_ANSWER, NO_HTTP)
        assert time.monotonic() - began < 4 * slowness()
        other = post(address, {}, b"{}", allowed_networks=LOOPBACK)
        assert other == Outcome(fault="TLS failed: CERTIFICATE_VERIFY_FAILED")


OURS = ["10.20.0.0/24", "fd00::/64"]


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://portal.example.org", Destination(True, "portal.example.org", 443, "/")),
        ("https://h.example:8443/a/b?c=d", Destination(True, "h.example", 8443, "/a/b?c=d")),
        ("https://[2606:2800::1]/x", Destination(True, "2606:2800::1", 443, "/x")),
    ],
)  # fmt: skip
def test_a_right_url_is_read(url: str, read: Destination) -> None:
    assert read_url(url, []) == read


@pytest.mark.parametrize(
    "url",
    [
        *("", "portal.example.org", "ftp://portal.example.org/", "file:///etc/passwd", "https://"),
        *("https:///x", "https://[::1/", "http://portal.example.org/", f"https://x/{'x' * 2_000}"),
        *(f"https://{user}@portal.example.org/" for user in ("u", "u:p", ":")),
        *(f"https://portal.example.org{rest}" for rest in ("/#x", ":0/", ":99999/", "/ x")),
        *(f"https://portal.example.org/{rest}" for rest in ("\u00e9", "\r\nHost: other")),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(NotAllowed):
        read_url(url, [])


NEVER = ("10.0.0.1", "127.1", "0x7f000001", "[fd01::1]", "p", "a.localhost.", "x.LOCAL")


@pytest.mark.parametrize(
    ("host", "networks"),
    [
        *((host, []) for host in NEVER),
        *((host, OURS) for host in ("10.21.0.7", "localhost", "127.1")),
    ],
)
def test_a_host_that_no_resolver_can_make_public_is_refused_at_once(
    host: str, networks: list[str]
) -> None:
    with pytest.raises(NotAllowed):
        check_host(read_url(f"https://{host}/", networks), networks)
    check_host(read_url("https://portal.example.org/", networks), networks)


def test_of_networks_that_operators_allow_any_name_may_be_without_tls() -> None:
    for host in ("10.20.0.7", "portal", "hub.internal"):
        check_host(read_url(f"http://{host}/", OURS), OURS)
    assert read_url("http://portal.example.org/x", OURS).port == 80


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1"),  # noqa: S104 - refused
        *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fd12:3456::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "2001:db8::1"),
        # Behind these is an IPv4 address.
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:7f00:1::"),
        *("::7f00:1", "::a00:1", "::ffff:0:7f00:1"),
        # Local, but not to Python: site-local, and what no network routes.
        *("fec0::1", "fe00::1", "5f00::1", "4000::1", "3fff::1"),
        *("192.0.0.9", "192.88.99.1"),  # the nearest NAT or relay
        *("10.20.1.0", "fd00:0:0:1::1"),  # just outside of ours
        *("", "localhost", "127.1"),
    ],
)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert not is_allowed(address, is_https=True, allowed_networks=OURS)


def test_public_addresses_and_each_of_networks_that_operators_allow_may_be_used() -> None:
    public = ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946")
    for address in (*public, "10.20.0.255", "::ffff:10.20.0.1", "fd00::1"):
        assert is_allowed(address, is_https=True, allowed_networks=OURS)
    assert all(is_allowed(one, is_https=True, allowed_networks=[]) for one in public)


AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FAILED = Outcome(500)


def test_a_message_is_tried_ten_times_in_about_three_days() -> None:
    at, count = AT, 1
    while (due := next_attempt(count, FAILED, at, lambda: 0.0)) is not None:
        at, count = due, count + 1
    assert count == MOST_ATTEMPTS == 10
    # As in the table of the specification.
    assert at - AT == timedelta(hours=75, minutes=35, seconds=5)


def test_each_delay_is_longer_by_up_to_a_quarter() -> None:
    first = next_attempt(2, FAILED, AT, lambda: 0.0)
    last = next_attempt(2, FAILED, AT, lambda: 1.0)
    assert (first, last) == (AT + timedelta(minutes=5), AT + timedelta(minutes=6, seconds=15))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *((text, 0) for text in ("", "-1", "1.5", "soon", "\u0661")),
        *((text, 120) for text in ("120", " 120 ")),
        ("9" * 60, 86_400),
        ("Sun, 01 Mar 2026 12:10:00 GMT", 600),
        ("Sun, 01 Mar 2026 12:10:00", 600),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2037 11:00:00 GMT", 86_400),
        ("Sun, 99 Mar 2037 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2026 12:10:00 +9999", 0),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999999999", 0),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 86_400),
    ],
)
def test_what_a_receiver_asks_for_is_heard_up_to_a_day(text: str, seconds: int) -> None:
    assert retry_after(Outcome(429, retry_after=text), AT) == timedelta(seconds=seconds)


def test_no_attempt_is_made_before_the_receiver_wants_it() -> None:
    outcome = Outcome(503, retry_after="3600")
    assert next_attempt(1, outcome, AT, lambda: 0.0) == AT + timedelta(hours=1)
    assert next_attempt(9, outcome, AT, lambda: 0.0) == AT + timedelta(hours=24)
    assert pause_until(1, outcome, AT) == AT + timedelta(hours=1)


def test_the_pauses_of_a_receiver_grow_to_five_minutes() -> None:
    pauses = [(pause_until(n, Outcome(429), AT) - AT).total_seconds() for n in (1, 2, 8, 9, 9999)]
    assert pauses == [2, 4, 256, 300, 300]


@pytest.mark.parametrize(
    ("outcome", "is_success", "is_about_the_receiver"),
    [
        *((Outcome(status), False, False) for status in (199, 302, 404, 500)),
        *((Outcome(status), True, False) for status in (200, 299)),
        *((Outcome(status), False, True) for status in (429, 502, 503, 504)),
        (Outcome(fault="connection refused"), False, True),
    ],
)
def test_only_2xx_is_a_success_and_some_faults_concern_every_message(
    outcome: Outcome, is_success: bool, is_about_the_receiver: bool
) -> None:
    assert outcome.is_success is is_success
    assert outcome.is_about_the_receiver is is_about_the_receiver
    assert not outcome.is_gone
    assert Outcome(410).is_gone


# The example that every library of the specification is tested with.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, SECONDS, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_example_of_the_specification_has_its_signature() -> None:
    assert signed_headers(ID, SECONDS, BODY, [SECRET]) == {
        "webhook-id": ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }


def test_a_new_secret_is_as_the_specification_wants_it() -> None:
    secret = new_secret()
    assert secret.startswith("whsec_")
    assert 24 <= len(base64.b64decode(secret[6:], validate=True)) <= 64
    assert secret != new_secret()
