"""What the server does with bytes that no library would send: each gets an answer (contract 1)."""

import contextlib
import re
import socket
import time
from urllib.parse import urlencode

import pytest

from identity.server import limits
from tests.live.cluster import new_client
from tests.servers.service import Service
from tests.servers.wire import WireAnswer, answers_in, connected, read_answer, read_to_end, send_all
from tests.support.answers import assert_shape
from tests.support.erp import FORM, Erp

pytestmark = pytest.mark.gate

LINK = r'^<http://127\.0\.0\.1:\d+/errors/[a-z_]+>; rel="help"$'
NAME = b"Host: id.example.org\r\n"
CLOSE = b"Connection: close\r\n"
START = b"POST /connect/token HTTP/1.1\r\n" + NAME
FORM_TYPE = f"Content-Type: {FORM}\r\n".encode()
GET_LIVE = b"GET /health/live HTTP/1.1\r\n" + NAME + b"\r\n"
LAST_GET = b"GET /health/live HTTP/1.1\r\n" + NAME + CLOSE + b"\r\n"


@pytest.fixture(scope="module")
def erp_of_node(node: Service) -> Erp:
    # Other tests use the same node.
    return new_client(node, "--logins-per-minute", "0", tin="C1000000002")


def lines(text: bytes) -> bytes:
    """What is written on lines, with `|` for the end of each."""
    return text.replace(b"|", b"\r\n")


def login(erp: Erp, *headers: bytes, body: bytes | None = None) -> bytes:
    form = urlencode(erp.form).encode()
    head = b"".join(header + b"\r\n" for header in headers)
    if body is None:
        body, head = form, head + b"Content-Length: %d\r\n" % len(form)
    return START + FORM_TYPE + head + b"\r\n" + body


def assert_refusal(answer: WireAnswer, status: int, error: str, text: str = "") -> None:
    assert (answer.status, answer.reason) == (status, error)
    assert re.search(LINK, answer.headers["link"])
    assert_shape(answer.headers, answer.json, error, text)


# --- Not HTTP, or HTTP that could be read in two ways ---------------------------------------------

PATHS = (b"GET /", b"GET /errors/", b"POST /connect/token/")
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
# Of the login, after its first line and `Host`.
HEADS = [
    *(b"Content-Length: 3|Transfer-Encoding: chunked||0||", b"Content-Length: 3, 3||abc"),
    *(b"Transfer-Encoding: chunked|Content-Length: 3||0||", b"Content-Length: +3||abc"),
    *(b"Content-Length: 3|Content-Length: 3||abc", b"Content-Length: 99999999999999999999999||"),
    *(b"Transfer-Encoding: identity||abc", b"Transfer-Encoding: gzip, chunked||0||"),
    *(b"Transfer-Encoding: xchunked||0||", b"Transfer-Encoding: chunked||zz|abc|0||"),
    *(b"Transfer-Encoding: chunked||-3|abc|0||", b"Transfer-Encoding: chunked||3|abcd|0||"),
    *(b"Transfer-Encoding: chunked||3\nabc\n0\n\n", b"X: a| b|Content-Length: 0||", b"no colon||"),
    *(b"X: a\0b|Content-Length: 0||", b"X\0: a|Content-Length: 0||", b"X : a|Content-Length: 0||"),
    *(b"X: a\nContent-Length: 0||", b"X: a\rb|Content-Length: 0||", NAME + b"Content-Length: 0||"),
]
REQUESTS = [
    b"POST /connect/token HTTP/1.0|Transfer-Encoding: chunked||0||",
    b"POST /connect/token HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
    b"POST /connect/token HTTP/1.1|Content-Length: 0||",
    b"POST /connect/token\xff HTTP/1.1|Host: x||",
    b"POST /connect/token?a=\xff HTTP/1.1|Host: x||",
    *(b"POST /connect /token HTTP/1.1|Host: x||", b"POST /connect/token HTTP/3.7|Host: x||"),
    b"CONNECT localhost:80 HTTP/1.1|Host: x||",
    b"CONNECT /connect/token HTTP/1.1|Host: x|Content-Length: 3||abc",
    b"CONNECT / HTTP/1.1|Host: x|Transfer-Encoding: chunked||3|abc|0||",
    *(b"NONSENSE /connect/token HTTP/1.1|Host: x||", b"PRI * HTTP/2.0||SM||"),
    *(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\0" * 100),
]
UNCLEAR = [lines(request) for request in (*(START + head for head in HEADS), *REQUESTS)]


@pytest.mark.parametrize("request_bytes", UNCLEAR, ids=lambda value: repr(value[-40:]))
def test_what_is_not_clear_is_refused_and_nothing_after_it_is_a_request(
    node: Service, request_bytes: bytes
) -> None:
    (answer,) = send_all(node.url, request_bytes + SMUGGLED)
    assert_refusal(answer, 400, "invalid_request", "malformed")
    assert answer.headers["connection"] == "close"


# What HTTP does not allow in a name, what a library may make of it, and what people write.
MISSPELLED = [
    *(b"onbehalfof ", b"onbehalfof\t", b"onbehalfof\0", b"On-Behalf-Of ", b"on behalf of"),
    *(b"\0onbehalfof", b"onbehalf\xffof", b" onbehalfof", b"onbehalfof\x0b", b"(onbehalfof)"),
    *(b"On-Behalf-Of", b"on_behalf_of", b"X-OnBehalfOf", b"onbehalf", b"on.behalf.of"),
    *(b"onbehalfof_", b"*onbehalfof*", b"X_On_Behalf_Of"),
]


@pytest.mark.parametrize("name", MISSPELLED)
def test_a_header_that_was_meant_as_onbehalfof_is_refused_by_its_name(
    node: Service, erp_of_node: Erp, name: bytes
) -> None:
    request = login(erp_of_node, name + b": C1000000001", b"Connection: close")
    (answer,) = send_all(node.url, request)
    assert_refusal(answer, 400, "invalid_request", "The header onbehalfof is wrong")
    assert answer.headers["link"].endswith('/errors/malformed_on_behalf_of>; rel="help"')
    # In pieces the server may stop before it knows the whole name.
    (answer,) = send_all(node.url, *(request[n : n + 1] for n in range(len(request))))
    assert_refusal(answer, 400, "invalid_request")


def with_trailer(erp: Erp, trailer: bytes, *headers: bytes) -> bytes:
    form = urlencode(erp.form).encode()
    body = b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(form), form, trailer)
    return login(erp, CLOSE.strip(), b"Transfer-Encoding: chunked", *headers, body=body)


@pytest.mark.parametrize("name", [b"onbehalfof", b"OnBehalfOf", b"On-Behalf-Of", b"onbehalf"])
def test_onbehalfof_as_a_trailer_is_refused_and_no_login_for_oneself(
    node: Service, erp_of_node: Erp, name: bytes
) -> None:
    trailer = name + b": C1000000001\r\n"
    right = b"onbehalfof: C1000000001"
    for request in (
        with_trailer(erp_of_node, trailer),
        with_trailer(erp_of_node, b"X: y\r\n" + trailer + b"Z: y\r\n"),
        with_trailer(erp_of_node, trailer, right),  # also beside the header
        with_trailer(erp_of_node, b"", b"Trailer: X, " + name),  # a proxy may have dropped it
    ):
        for parts in ([request], [request[n : n + 1] for n in range(len(request))]):
            (answer,) = send_all(node.url, *parts)
            assert_refusal(answer, 400, "invalid_request", "it is sent as a trailer")
            assert answer.headers["link"].endswith('/errors/malformed_on_behalf_of>; rel="help"')


def test_a_trailer_of_a_request_that_was_answered_takes_no_answer_from_the_next(
    node: Service, erp_of_node: Erp
) -> None:
    """A body that is too long is refused before its end; what the client sends next is answered."""
    too_long = b"%x\r\n%b\r\n" % (20_000, b"x" * 20_000)
    with connected(node.url) as connection:
        connection.sendall(login(erp_of_node, b"Transfer-Encoding: chunked", body=too_long))
        assert_refusal(read_answer(connection), 400, "invalid_request")
        trailer = b"0\r\nonbehalfof: C1000000001\r\n\r\n"
        connection.sendall(trailer + login(erp_of_node, CLOSE.strip()))
        (answer,) = answers_in(read_to_end(connection))
    assert answer.status == 200


def test_a_trailer_is_none_of_the_headers(node: Service, erp_of_node: Erp) -> None:
    """A proxy replaces X-Forwarded-For among the headers; behind the body nobody looks for it."""
    fields = b"Authorization: Basic !\r\nContent-Type: a/b\r\nX-Forwarded-For: 203.0.113.9\r\n"
    (answer,) = send_all(node.url, with_trailer(erp_of_node, fields))
    assert answer.status == 200
    # Nor of the next request on this connection.
    first = with_trailer(erp_of_node, fields).replace(CLOSE, b"")
    answers = send_all(node.url, first + login(erp_of_node, CLOSE.strip()))
    assert [answer.status for answer in answers] == [200, 200]


@pytest.mark.parametrize(
    "rest",
    [b"0\r\nX: " + b"a" * 400_000, b"0\r\n" + b"X: a\r\n" * 60_000, b"1;" + b"a" * 400_000],
    ids=["one value", "many", "a chunk extension"],
)
def test_a_trailer_without_an_end_is_refused(node: Service, erp_of_node: Erp, rest: bytes) -> None:
    chunked = login(erp_of_node, b"Transfer-Encoding: chunked", body=b"3\r\na=b\r\n")
    (answer,) = send_all(node.url, chunked + rest)
    assert_refusal(answer, 400, "invalid_request", "longer than 32768 bytes")


@pytest.mark.parametrize(
    "request_text",
    [
        b"HIDDEN77 /connect/token HTTP/1.1|Host: x||",
        b"POST /connect HIDDEN77 HTTP/1.1|Host: x||",
        b"POST /connect/token?HIDDEN77=\xff HTTP/1.1|Host: x||",
        *(b"POST /connect/token HIDDEN77/1.1|Host: x||", b"HIDDEN77||", START + b"HIDDEN77||"),
        *(
            START + rest
            for rest in (b"HIDDEN77 : a||", b"a: HIDDEN77\0||", b"onbehalfof HIDDEN77: a||")
        ),
        *(START + b"Transfer-Encoding: HIDDEN77||", START + b"Content-Length: HIDDEN77||"),
        START + b"Transfer-Encoding: chunked||HIDDEN77|",
        *(method + b"HIDDEN77 HTTP/1.1|Host: x|Connection: close||" for method in PATHS),
    ],
)
def test_no_answer_repeats_what_a_client_sent(node: Service, request_text: bytes) -> None:
    (answer,) = send_all(node.url, lines(request_text))
    assert 400 <= answer.status < 500
    assert "hidden77" not in f"{answer}".lower()


TOO_LONG = "longer than 32768 bytes"
END = b" HTTP/1.1\r\nHost: x\r\n\r\n"
MANY = b"".join(b"X-%d: a\r\n" % n for n in range(101))


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"GET /" + b"a" * 40_000 + END, f"its address is {TOO_LONG}"),
        (b"GET /" + b"a" * 70_000 + END, f"its address is {TOO_LONG}"),
        (b"GET /" + b"a" * 400_000 + END, f"its address is {TOO_LONG}"),
        (b"GET /" + b"a" * 200_000, ""),
        (START + b"X: " + b"a" * 40_000 + b"\r\n\r\n", TOO_LONG),
        (START + b"X" * 40_000 + b": a\r\n\r\n", TOO_LONG),
        (START + b"".join(b"X-%d: %0900d\r\n" % (n, n) for n in range(90)) + b"\r\n", TOO_LONG),
        (START + MANY + b"\r\n", "more than 100 headers"),
    ],
    ids=[
        *("address", "longer address", "longest address", "address without an end"),
        *("one value", "one name", "together", "many"),
    ],
)
def test_a_head_that_is_too_long_is_refused(node: Service, head: bytes, says: str) -> None:
    (answer,) = send_all(node.url, head)
    assert_refusal(answer, 400, "invalid_request", says)


@pytest.mark.parametrize("part", [START, START + b"Content-Length: 9\r\n\r\nabc"])
def test_a_request_that_ends_too_early_is_answered(node: Service, part: bytes) -> None:
    (answer,) = send_all(node.url, part, end=True)
    assert_refusal(answer, 400, "invalid_request", "ended before it was complete")


STAFF_PATHS = ("/", "/admin/", "/admin/login/", "/signin/")
MACHINE_PATHS = (
    *("/connect/token", "/api/v1/me", "/health/live", "/health/ready", "/metrics", "/nothing"),
    *("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"),
    *("/.well-known/jwks.json", "/status", "/status/0"),
    *("/api/v1/credentials/current", "/api/v1/permissions", "/api/v1/logins/x/explanation"),
)


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize(
    ("content_type", "query"),
    [
        (f"{FORM}; charset=\0", ""),
        (f"{FORM}; charset*=a'b'c%zz", ""),
        (f"{FORM}; charset=\x7f", ""),
        (f"{FORM}; charset=idna", "?a=%ff.b"),
        (f"{FORM}; charset=utf-16", "?a=%ff"),
        (FORM, "?" + "&".join(f"a{n}=1" for n in range(1100))),
        (f"{FORM}; charset=idna", "?" + "&".join(f"a{n}=1" for n in range(1100))),
        ("multipart/form-data; boundary*=foo''%e4", ""),
        (f'{FORM}; charset="', ""),
    ],
)
def test_no_content_type_ends_in_silence(
    node: Service, content_type: str, query: str, method: str
) -> None:
    for path in (*MACHINE_PATHS, *STAFF_PATHS):
        head = f"{method} {path}{query} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\n"
        request = head.encode("latin-1") + CLOSE + b"Content-Length: 3\r\n\r\na=b"
        (answer,) = send_all(node.url, request)
        # A path that is only read may be answered whatever the type is.
        assert answer.status < 500, path
        assert answer.status >= 400 or path != "/connect/token"
        if path in MACHINE_PATHS and answer.status >= 400:
            assert answer.headers["content-type"] == "application/json", path
    assert "Traceback" not in node.log
    assert '"traceback"' not in node.log


def test_a_content_type_that_django_cannot_read_is_refused_in_json(node: Service) -> None:
    # The login reads no more of it than it needs, and finds an empty body.
    for path, text in (("/connect/token", "grant_type is missing"), ("/admin/login/", "malformed")):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {FORM}; charset*=a'b'c%zz\r\n"
        (answer,) = send_all(node.url, head.encode() + CLOSE + b"Content-Length: 0\r\n\r\n")
        assert_refusal(answer, 400, "invalid_request", text)


# --- Unusual, and right ---------------------------------------------------------------------------


def test_chunks_of_any_size_and_single_bytes_are_a_login(node: Service, erp_of_node: Erp) -> None:
    form, whole = urlencode(erp_of_node.form).encode(), login(erp_of_node, CLOSE.strip())
    requests = [[whole[n : n + 1] for n in range(len(whole))]]
    for size in (1, 7, len(form)):
        parts = [form[n : n + size] for n in range(0, len(form), size)]
        body = b"".join(b"%x;ext=1\r\n%b\r\n" % (len(part), part) for part in parts)
        headers = (b"Transfer-Encoding: Chunked", CLOSE.strip())
        requests.append([login(erp_of_node, *headers, body=body + b"0\r\nTrailer: x\r\n\r\n")])
    for request in requests:
        (answer,) = send_all(node.url, *request)
        assert answer.status == 200


def test_the_header_itself_is_read_in_any_case(node: Service, erp_of_node: Erp) -> None:
    (answer,) = send_all(node.url, login(erp_of_node, b"ONBEHALFOF: C1000000001", CLOSE.strip()))
    # It is understood, and refused only because this client is no intermediary.
    assert_refusal(answer, 400, "unauthorised_client", "not registered as an intermediary")


@pytest.mark.parametrize("header", [b"X: y", b"Expect: 100-continue"])
def test_a_login_of_http_1_0_is_answered_without_a_100_and_closed(
    node: Service, erp_of_node: Erp, header: bytes
) -> None:
    """RFC 9110 section 10.1.1: it does not know interim answers."""
    request = login(erp_of_node, header).replace(b"1.1\r\n" + NAME, b"1.0\r\n", 1)
    head, _, body = request.partition(b"\r\n\r\n")
    (answer,) = send_all(node.url, head + b"\r\n\r\n", body)
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert "date" in answer.headers  # RFC 9110 section 6.6.1


def test_offers_of_http_2_are_passed_over_also_in_the_same_bytes(
    node: Service, erp_of_node: Erp
) -> None:
    """As Java's client sends it with the first request of a connection."""
    offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAA")
    with connected(node.url) as connection:
        for headers in (offer, ()):
            connection.sendall(login(erp_of_node, *headers))
            assert read_answer(connection).status == 200
    last = login(erp_of_node, b"Connection: Upgrade, close", b"Upgrade: h2c")
    answers = send_all(node.url, GET_LIVE + login(erp_of_node, *offer) * 3 + last)
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 200]
    flood = send_all(node.url, login(erp_of_node, *offer) * 200)
    assert_refusal(flood[-1], 400, "invalid_request", "without waiting")
    assert '"traceback"' not in node.log


def test_a_client_that_waits_for_100_continue_gets_it(node: Service, erp_of_node: Erp) -> None:
    head, _, body = login(erp_of_node, b"Expect: 100-continue").partition(b"\r\n\r\n")
    with connected(node.url) as connection:
        connection.sendall(head + b"\r\n\r\n")
        assert read_answer(connection).status == 100
        connection.sendall(body)
        assert read_answer(connection).status == 200


def test_pipelined_requests_are_answered_in_their_order(node: Service, erp_of_node: Erp) -> None:
    ask = (login(erp_of_node), GET_LIVE, START + FORM_TYPE + b"Content-Length: 0\r\n\r\n")
    answers = send_all(node.url, b"".join(ask) * 5 + LAST_GET)
    assert [answer.status for answer in answers] == [200, 200, 400] * 5 + [200]
    assert all(b"access_token" in answer.body for answer in answers[:-1:3])


def test_a_flood_of_pipelined_requests_is_answered_and_ended(node: Service) -> None:
    answers = send_all(node.url, GET_LIVE * 1000)
    assert len(answers) >= limits.MAX_PIPELINED
    assert {answer.status for answer in answers[:-1]} == {200}
    assert_refusal(answers[-1], 400, "invalid_request", "without waiting")


@pytest.mark.parametrize(
    "path", ["/connect/%74oken", "/connect%2Ftoken", "/connect%2ftoken", "/connect/toke%6E"]
)
def test_a_path_is_the_login_only_as_it_is_written(
    node: Service, erp_of_node: Erp, path: str
) -> None:
    """A rule of a proxy for `/connect/token` does not see the others."""
    with connected(node.url) as connection:
        connection.sendall(login(erp_of_node).replace(b"/connect/token", path.encode(), 1))
        answer = read_answer(connection)
        assert answer.status == 404
        assert answer.headers["content-type"] == "application/json"
        connection.sendall(b"GET /metric%73 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(connection).status == 404


def test_head_names_the_length_and_has_no_body_that_could_be_read_as_the_next_answer(
    node: Service,
) -> None:
    for path in (
        *("/health", "/health/live", "/health/ready", "/metrics", "/api/v1/me", "/connect/token"),
        *("/nothing", "/admin/", "/", "/errors/no_permission", "/.well-known/jwks.json"),
    ):
        with connected(node.url) as connection:
            connection.sendall(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode() + LAST_GET)
            head, _, rest = read_to_end(connection).partition(b"\r\n\r\n")
        assert re.search(rb"(?i)content-length: [0-9]", head), path
        assert rest.startswith(b"HTTP/1.1 200 OK\r\n"), path


@pytest.mark.parametrize("size", [17_000, 200_000, 900_000])
def test_a_body_too_long_is_refused_and_the_connection_goes_on(
    node: Service, erp_of_node: Erp, size: int
) -> None:
    with connected(node.url) as connection:
        body = b"a" * size
        connection.sendall(login(erp_of_node, b"Content-Length: %d" % size, body=body))
        assert_refusal(read_answer(connection), 400, "invalid_request", "16384")
        connection.sendall(login(erp_of_node))
        assert read_answer(connection).status == 200


def test_a_body_without_an_end_is_answered_and_closed(node: Service, erp_of_node: Erp) -> None:
    with connected(node.url) as connection:
        connection.sendall(login(erp_of_node, b"Content-Length: 1000000000000", body=b"a" * 20_000))
        assert_refusal(read_answer(connection), 400, "invalid_request", "16384")
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() < began + 5:
                connection.sendall(b"a" * 65536)
            pytest.fail("read on and on, after the answer")


def test_a_reset_in_any_moment_leaves_no_trace(node: Service, erp_of_node: Erp) -> None:
    request = login(erp_of_node)
    for length in range(0, len(request) + 1, 29):
        with connected(node.url) as connection:
            linger = b"\1\0\0\0\0\0\0\0"
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(request[:length])
    (answer,) = send_all(node.url, login(erp_of_node, b"Connection: close"))
    assert answer.status == 200
    assert "Traceback" not in node.log
    assert '"traceback"' not in node.log
