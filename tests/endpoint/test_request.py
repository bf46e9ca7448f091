"""A login request from bytes and headers to what it asks for, or its first fault (contract 1)."""

import base64
import gzip
import re
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from itertools import combinations_with_replacement
from urllib.parse import unquote_to_bytes, urlencode

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.test import RequestFactory
from hypothesis import given, strategies as st
from msgspec.structs import replace

from taxpayers.credentials import Prefix, hash_secret, new_client_id, new_client_secret
from taxpayers.identifiers import Notation, TaxpayerId
from taxpayers.rules import Refused
from tests.support.erp import FORM, PATH, assert_refused
from tokens.client_auth.assertion import JWT_BEARER
from tokens.client_auth.authenticated import Method
from tokens.client_auth.client_secret import ClientSecretCredentials, SentSecret, read_credentials
from tokens.form_encoding import percent_decoded
from tokens.operations.view import token_view
from tokens.request.arrival import receive
from tokens.request.form import MAX_BODY_BYTES, read_form
from tokens.request.token_request import (
    RawTokenRequest,
    TokenRequest,
    UnreadableRequest,
    read_api_request,
    read_client_request,
    read_token_request,
    recognize,
)

ISSUER = "https://id.example.org"
NOTATION = Notation("[A-Z0-9]{5,20}", "[A-Z0-9-]{5,20}")
CLIENT_ID = "ci_test_7lmqToiYlcJNiFW0w5ce5U1kLdBn"
CLIENT_SECRET = "cs_test_6GKfzaScRpPgQkVDIuxfPaHQntHPKzeApvGRXlvM9NH2UpRB0"
RIGHT = RawTokenRequest(
    body=urlencode(
        {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    ).encode(),
    content_type=FORM,
)


def basic(pair: str) -> str:
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def read(raw: RawTokenRequest) -> TokenRequest:
    return read_token_request(raw, notation=NOTATION, environment="test", issuer=ISSUER)


def fault_of(raw: RawTokenRequest) -> tuple[str, str]:
    with pytest.raises(Refused) as refused:
        read(raw)
    return refused.value.reason, refused.value.parameter


def test_a_right_request_asks_for_this_and_nothing_else() -> None:
    credentials = ClientSecretCredentials(
        Method.CLIENT_SECRET_POST, CLIENT_ID, hash_secret(CLIENT_SECRET)
    )
    assert read(RIGHT) == TokenRequest(credentials, scopes=None, on_behalf_of=None)
    more = replace(
        RIGHT,
        body=RIGHT.body + b"&scope=B+A+B&unknown=1",
        authorization="Bearer stale",
        on_behalf_of=" c1000000001\t",
    )
    assert read(more) == TokenRequest(credentials, ("B", "A"), TaxpayerId("C1000000001"))
    by_basic = replace(
        RIGHT,
        body=b"grant_type=client_credentials",
        authorization=basic(f"{CLIENT_ID}:{CLIENT_SECRET}"),
    )
    assert read(by_basic).credentials == replace(credentials, method=Method.CLIENT_SECRET_BASIC)


# --- The order of the faults --------------------------------------------------------------------
def in_body(old: str, new: str) -> Callable[[RawTokenRequest], RawTokenRequest]:
    return lambda raw: replace(raw, body=raw.body.replace(old.encode(), new.encode()))


# One fault each, in the order of the contract.
FAULTS: list[tuple[str, Callable[[RawTokenRequest], RawTokenRequest]]] = [
    ("method_not_allowed", lambda raw: replace(raw, method="GET")),
    ("insecure_transport", lambda raw: replace(raw, is_secure=False)),
    ("malformed_request", lambda raw: replace(raw, body_fault="it is broken")),
    ("missing_parameter", in_body(CLIENT_ID, "")),
    ("unsupported_grant_type", in_body("client_credentials", "password")),
    ("malformed_on_behalf_of", lambda raw: replace(raw, on_behalf_of="")),
    ("malformed_credentials", in_body(CLIENT_SECRET, CLIENT_SECRET[:-1])),
]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(one, two, id=f"{one[0]} before {two[0]}")
        for one, two in combinations_with_replacement(FAULTS, 2)
    ],
)
def test_of_two_faults_the_one_that_the_contract_names_first_is_told(
    first: tuple[str, Callable[[RawTokenRequest], RawTokenRequest]],
    second: tuple[str, Callable[[RawTokenRequest], RawTokenRequest]],
) -> None:
    assert fault_of(second[1](first[1](RIGHT)))[0] == first[0]


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("A", ("A",)),
        ("B A B", ("B", "A")),
        ("!#[]~", ("!#[]~",)),
        # No list by RFC 6749 section 3.3: one name, which is unknown.
        *((text, (text,)) for text in ("A  B", " A", "A ", " ", "A\tB", "A\nB", "A \u2003B")),
        *((text, (text,)) for text in ('A "B"', "A \\", "A \x7f", "A \xe9", "A\n", "\0")),
    ],
)
def test_scopes_are_separated_by_one_space(text: str, scopes: tuple[str, ...]) -> None:
    body = RIGHT.body + b"&" + urlencode({"scope": text}).encode()
    assert read(replace(RIGHT, body=body)).scopes == scopes


def test_of_two_credentials_of_the_wrong_form_the_id_is_named() -> None:
    both = RIGHT.body.replace(CLIENT_ID.encode(), b"x").replace(CLIENT_SECRET.encode(), b"y")
    assert fault_of(replace(RIGHT, body=both)) == ("malformed_credentials", "client_id")


# --- A request about one token --------------------------------------------------------------------
def by_client(raw: RawTokenRequest) -> tuple[object, str]:
    return read_client_request(raw, "token", environment="test", issuer=ISSUER)


def by_api(raw: RawTokenRequest) -> tuple[object, str]:
    body = raw.body.replace(CLIENT_ID.encode(), API_ID.encode())
    body = body.replace(CLIENT_SECRET.encode(), API_SECRET.encode())
    return read_api_request(replace(raw, body=body), "token", environment="test")


API_ID = new_client_id("test", Prefix.API_ID)
API_SECRET = new_client_secret("test", Prefix.API_SECRET)
OF_EACH: dict[object, tuple[str, str]] = {
    by_client: (CLIENT_ID, hash_secret(CLIENT_SECRET)),
    by_api: (API_ID, hash_secret(API_SECRET)),
}
by_each = pytest.mark.parametrize("read_request", OF_EACH)
ABOUT_TOKEN = replace(RIGHT, body=RIGHT.body + b"&token=a.b.c")


@by_each
def test_a_request_about_one_token_asks_for_it_by_the_same_credentials(
    read_request: Callable[[RawTokenRequest], tuple[object, str]],
) -> None:
    credentials = ClientSecretCredentials(Method.CLIENT_SECRET_POST, *OF_EACH[read_request])
    assert read_request(ABOUT_TOKEN) == (credentials, "a.b.c")


def test_a_protected_api_proves_who_it_is_by_a_secret_alone() -> None:
    assertion = {"client_assertion": "a.b.c", "client_assertion_type": JWT_BEARER}
    with pytest.raises(Refused) as refused:
        by_api(replace(RIGHT, body=urlencode(assertion | {"token": "a.b.c"}).encode()))
    assert refused.value.reason == "malformed_request"
    assert "authenticates with client_id and client_secret" in refused.value.detail


@by_each
@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (in_body("token=a.b.c", "token="), ("missing_parameter", "token")),
        (in_body(CLIENT_ID, ""), ("missing_parameter", "client_id")),
        (in_body(CLIENT_SECRET, ""), ("missing_parameter", "client_secret")),
        (in_body(CLIENT_SECRET, "x"), ("malformed_credentials", "client_secret")),
        (lambda raw: replace(raw, method="GET"), ("method_not_allowed", "")),
    ],
)
def test_a_request_about_one_token_has_the_faults_of_a_login(
    read_request: Callable[[RawTokenRequest], tuple[object, str]],
    spoil: Callable[[RawTokenRequest], RawTokenRequest],
    fault: tuple[str, str],
) -> None:
    with pytest.raises(Refused) as refused:
        read_request(spoil(ABOUT_TOKEN))
    assert (refused.value.reason, refused.value.parameter) == fault


# --- The form -----------------------------------------------------------------------------------
MANY = "&".join(f"p{n}=1" for n in range(101)).encode()


def test_a_form_may_be_16_kib_long_and_have_100_parameters() -> None:
    longest = b"a=" + b"b" * (MAX_BODY_BYTES - 2)
    assert len(read_form(longest, FORM, "").values["a"]) == MAX_BODY_BYTES - 2 == 16_382
    most = "&".join(f"p{n}=1" for n in range(100)).encode()
    assert len(read_form(most, FORM, "").values) == 100


@pytest.mark.parametrize(
    ("body", "query", "says"),
    [
        (gzip.compress(RIGHT.body), "", "compressed"),
        (b"a=%zz", "", "percent"),
        (b"a=%ff", "", "UTF-8"),
        (b"a=\xc3\xa9", "", "percent-encoded"),
        (MANY, "", "more than 100"),
        (b"", "a=%zz", "query string"),
        (b"", "a=%ff", "query string"),
        (b"", MANY.decode(), "query string"),
        (b"", "client_secret=x", "query string"),
    ],
)
def test_what_is_wrong_with_a_form_is_named(body: bytes, query: str, says: str) -> None:
    with pytest.raises(Refused) as refused:
        read_form(body, FORM, query)
    assert refused.value.reason == "malformed_request"
    assert says in refused.value.detail


def test_a_parameter_without_a_value_is_as_if_left_out() -> None:
    assert read_form(b"scope=&scope=A&scope&b=&b=", FORM, "").values == {"scope": "A"}


@pytest.mark.parametrize(
    "content_type",
    [FORM, FORM.upper(), f"{FORM}; charset=UTF-8", f'{FORM};charset="utf-8"', f"{FORM} ; x=y"],
)
def test_a_form_is_written_in_any_case_and_read_in_the_charset_that_it_names(
    content_type: str,
) -> None:
    assert read_form(b"a=%C3%A9", content_type, "").values == {"a": "\xe9"}
    assert read_form(b"a=%E9", f"{FORM}; charset=ISO-8859-1", "").values == {"a": "\xe9"}


def test_a_form_has_the_names_of_all_parameters_and_the_values_of_its_own() -> None:
    form = read_form(b"a=1&b=&c&%64=2", FORM, "e=3&f=")
    assert form.values == {"a": "1", "d": "2"}
    assert form.names == {*"abcdef"}
    assert "1" not in repr(form)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        *((name, f"the parameter {name}") for name in ("grant_type", "client_id", "client_secret")),
        *((name, f"the parameter {name}") for name in ("scope", "onbehalfof")),
        *((name, "a parameter") for name in ("Scope", "n" * 1000, CLIENT_SECRET)),
    ],
)
def test_the_name_of_a_repeated_parameter_is_told_if_we_know_it(name: str, named: str) -> None:
    with pytest.raises(Refused) as refused:
        read_form(f"{name}=1&{name}=2".encode(), FORM, "")
    assert refused.value.detail == f"{named} is sent more than once"


@pytest.mark.parametrize(
    ("longest", "part"),
    [
        (("", f"{FORM};" + "a" * (200 - len(FORM) - 1), ""), "Content-Type"),
        (("", FORM, "a" * 2048), "query string"),
    ],
)
def test_what_is_too_long_is_refused_before_it_is_read(
    longest: tuple[str, str, str], part: str
) -> None:
    body, content_type, query = longest
    assert read_form(body.encode(), content_type, query).values == {}
    longer = (content_type, query + "%") if query else (content_type + "%", query)
    with pytest.raises(Refused) as refused:
        read_form(body.encode(), *longer)
    assert refused.value.detail.startswith(f"the {part} is longer than ")


# --- HTTP Basic ---------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC", "Basic "])
def test_basic_credentials_are_form_decoded(scheme: str) -> None:
    sent = basic("a%2Bb+c:d+e%3A%25:f").replace("Basic", scheme)
    assert read_credentials({}, sent) == SentSecret(Method.CLIENT_SECRET_BASIC, "a+b c", "d e:%:f")


@pytest.mark.parametrize(
    "authorization",
    [
        *map(basic, ("a:%zz", "a:%", "%ff:b", "a:%ff", "a:\xe9", "no colon")),
        *("Basic Y-Tpi", "Basic"),
    ],
)
def test_a_basic_header_that_cannot_be_read_exactly_is_refused(authorization: str) -> None:
    with pytest.raises(Refused) as refused:
        read_credentials({}, authorization)
    assert refused.value.reason == "malformed_request"
    assert "base64 of client_id:client_secret" in refused.value.detail


def test_a_basic_header_is_read_up_to_1024_characters() -> None:
    longest = basic("a:" + "b" * 766)
    assert len(longest) == len("Basic ") + 1024
    assert read_credentials({}, longest).client_id == "a"
    with pytest.raises(Refused):
        read_credentials({}, basic("a:" + "b" * 767))


ENCODED = [b"%", b"%4", b"%41", b"%c3%A9", b"%zz", b"%%", b"%=", b"%\n", b"%\r\n", b"=3D", b"\n"]


@given(st.lists(st.one_of(st.sampled_from(ENCODED), st.binary(max_size=3)), max_size=40))
def test_what_is_percent_encoded_is_decoded_as_by_urllib(parts: list[bytes]) -> None:
    text = b"".join(parts)
    if re.search(rb"%(?![0-9A-Fa-f]{2})", text):
        with pytest.raises(ValueError, match="percent sign"):
            percent_decoded(text)
    else:
        assert percent_decoded(text) == unquote_to_bytes(text)


# --- What is recognized in a request that was refused ------------------------------------------
SHOWN_ID = "ci " + "c." * 30 + "c"


@pytest.mark.parametrize(
    ("raw", "recognized"),
    [
        (RawTokenRequest(), UnreadableRequest()),
        (replace(RIGHT, method="GET"), UnreadableRequest(CLIENT_ID)),
        (
            replace(RIGHT, on_behalf_of="c1000000001:20200"),
            UnreadableRequest(CLIENT_ID, TaxpayerId("C1000000001", "20200")),
        ),
        (replace(RIGHT, on_behalf_of="?"), UnreadableRequest(CLIENT_ID)),
        (replace(RIGHT, on_behalf_of=""), UnreadableRequest(CLIENT_ID)),
        # A form that cannot be read strictly: what it says first.
        (replace(RIGHT, content_type="text/plain"), UnreadableRequest(CLIENT_ID)),
        (replace(RIGHT, body=b"client_id=a&client_id=b"), UnreadableRequest("a")),
        (replace(RIGHT, body=b"client_id=a&b=%zz"), UnreadableRequest("a")),
        (replace(RIGHT, body=b"&".join([b"client_id=a"] * 101)), UnreadableRequest("a")),
        (replace(RIGHT, body=b"b=1&client_id=%63i+" + b"c." * 9000), UnreadableRequest(SHOWN_ID)),
        # The id of the header, unless the header cannot be read.
        (replace(RIGHT, body=b"", authorization=basic("a:b")), UnreadableRequest("a")),
        (replace(RIGHT, authorization="Basic !"), UnreadableRequest(CLIENT_ID)),
    ],
)
def test_what_is_recognized_in_a_request(
    raw: RawTokenRequest, recognized: UnreadableRequest
) -> None:
    assert recognize(raw, NOTATION) == recognized


# --- A body that does not arrive ---------------------------------------------------------------
def test_a_body_that_a_server_could_not_read_is_a_fault_of_the_request() -> None:
    _arrival, raw = receive({}, b"", datetime.now(UTC), "its chunks are malformed")
    fault = "the body cannot be read: its chunks are malformed"
    with pytest.raises(Refused) as refused:
        read(replace(raw, method="POST"))
    assert (refused.value.reason, refused.value.detail) == ("malformed_request", fault)


class Body(BytesIO):
    """What a client sends until its connection breaks, if it does."""

    def __init__(self, content: bytes = RIGHT.body, *, breaks: bool = False) -> None:
        super().__init__(content)
        self.breaks = breaks

    def read(self, size: int | None = -1, /) -> bytes:
        if self.breaks:
            raise OSError("reset by peer")
        return super().read(size)


def answer_to(body: Body, length: int) -> HttpResponse:
    request = RequestFactory().generic("POST", PATH, b"", FORM)
    sent = {"wsgi.input": body, "CONTENT_LENGTH": str(length), "CONTENT_TYPE": FORM}
    return token_view(WSGIRequest(request.environ | sent))


@pytest.mark.django_db
def test_a_connection_that_breaks_before_the_end_of_the_body_is_named() -> None:
    assert_refused(
        answer_to(Body(breaks=True), len(RIGHT.body)),
        reason="malformed_request",
        says="the body cannot be read: the connection broke before its end",
        fixed_by="developer of the ERP",
    )


@pytest.mark.django_db
def test_no_more_is_read_than_shows_that_a_body_is_too_long() -> None:
    body = Body(b"a" * 99_999)
    assert_refused(
        answer_to(body, 99_999),
        reason="malformed_request",
        says="the body is longer than 16384 bytes",
        fixed_by="developer of the ERP",
    )
    assert body.tell() == MAX_BODY_BYTES + 1
