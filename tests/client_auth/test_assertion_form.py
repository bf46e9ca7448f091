"""The form of an assertion to the character: what is read of it, without the database. Pure."""

from typing import Any

import pytest

from taxpayers.rules import Refused
from tests.client_auth.signer import RIGHT, encode, raw_object
from tokens.client_auth.assertion import (
    JWT_BEARER,
    AssertionFault,
    ClientAssertion,
    SentAssertion,
    read_assertion,
)
from tokens.client_auth.compact_jws import Header, UnreadableJws, parts_of, read_bytes, read_json

ISSUER, CLIENT = "https://id.example.org", '"ci_live_1"'


def signed(header: dict[str, str] | None = None, **claims: str) -> str:
    """A right assertion but for these values, in JSON; one given as "" is left out."""
    members = {"alg": '"EdDSA"', "kid": '"k"', "typ": '"JWT"'} | (header or {})
    right = {"iss": CLIENT, "sub": CLIENT, "aud": f'"{ISSUER}"', "jti": '"x"', "exp": "2000"}
    return RIGHT.sign(_object(members), _object(right | claims)).decode()


def _object(members: dict[str, str]) -> bytes:
    return raw_object({name: value.encode() for name, value in members.items() if value})


def read(assertion: str, client_id: str = "") -> ClientAssertion:
    return read_assertion(SentAssertion(client_id, assertion, JWT_BEARER), ISSUER)


def fault_of(assertion: str, client_id: str = "") -> str:
    with pytest.raises(Refused) as refused:
        read(assertion, client_id)
    assert refused.value.reason == "malformed_credentials"
    assert refused.value.parameter == "client_assertion"
    return refused.value.detail


def test_what_is_read_of_it() -> None:
    found = read(signed(nbf="1000", iat="900.5"))
    assert (found.client_id, found.kid, found.jti) == ("ci_live_1", "k", "x")
    assert (found.algorithm, found.expires, found.valid_from) == ("EdDSA", 2000, 1000)
    assert found.signed + b"." + encode(found.signature) == signed(nbf="1000", iat="900.5").encode()


@pytest.mark.parametrize(
    ("claims", "valid_from"),
    [({}, 0), ({"nbf": "5"}, 5), ({"iat": "7"}, 7), ({"nbf": "5", "iat": "7"}, 7)],
)
def test_it_is_valid_from_the_later_moment_that_it_names(
    claims: dict[str, Any], valid_from: float
) -> None:
    assert read(signed(**claims)).valid_from == valid_from


@pytest.mark.parametrize(
    ("assertion", "fault"),
    [
        (signed({"alg": '"HS256"'}), AssertionFault.ALGORITHM),
        (signed({"alg": '"none"'}), AssertionFault.ALGORITHM),
        (signed({"alg": ""}), AssertionFault.UNREADABLE),
        (signed({"alg": "[]"}), AssertionFault.UNREADABLE),
        (signed({"typ": '"at+jwt"'}), AssertionFault.TYPE),
        (signed({"typ": '"dpop+jwt"'}), AssertionFault.TYPE),
        (signed({"crit": "[]"}), AssertionFault.CRITICAL),
        (signed({"kid": ""}), AssertionFault.KID),
        (signed({"kid": '"é"'}), AssertionFault.KID),
        (signed({"kid": '"a\\u0007"'}), AssertionFault.KID),
        (signed(sub=""), AssertionFault.CLIENT),
        (signed(iss='"ci_live_2"'), AssertionFault.CLIENT),
        (signed(iss="", sub=""), AssertionFault.CLIENT),
        (signed(aud=f'"{ISSUER}/connect/token"'), AssertionFault.AUDIENCE),
        (signed(aud=f'["{ISSUER}","x"]'), AssertionFault.AUDIENCE),
        (signed(aud="[]"), AssertionFault.AUDIENCE),
        (signed(aud=""), AssertionFault.AUDIENCE),
        (signed(exp=""), AssertionFault.EXPIRY),
        (signed(exp="null"), AssertionFault.EXPIRY),
        (signed(exp="1790000000000"), AssertionFault.MILLISECONDS),
        (signed(iat="1790000000000"), AssertionFault.MILLISECONDS),
        (signed(exp='"2000"'), AssertionFault.UNREADABLE),
        (signed(jti=""), AssertionFault.JTI),
        (signed(jti=f'"{"j" * 129}"'), AssertionFault.JTI),
        (signed() + "!", AssertionFault.UNREADABLE),
        (signed() + ".", AssertionFault.UNREADABLE),
        (signed().rpartition(".")[0], AssertionFault.UNREADABLE),
        ("", AssertionFault.UNREADABLE),
        ("..", AssertionFault.UNREADABLE),
        ("a" * 4096, AssertionFault.UNREADABLE),
        ("a" * 4097, AssertionFault.TOO_LONG),
    ],
)
def test_each_fault_has_its_name(assertion: str, fault: AssertionFault) -> None:
    assert fault_of(assertion) == fault


@pytest.mark.parametrize("typ", ["", '"JWT"', '"jwt"', '"application/Client-Authentication+JWT"'])
def test_its_type_may_be_missing_and_has_no_case(typ: str) -> None:
    assert read(signed({"typ": typ})).kid == "k"


def test_eddsa_is_read_by_its_new_name_too() -> None:
    """RFC 9864: oauth4webapi, openid-client and jose send `Ed25519`."""
    assert read(signed({"alg": '"Ed25519"'})).algorithm == "EdDSA"


def test_the_audience_may_be_a_list_of_it_alone() -> None:
    assert read(signed(aud=f'["{ISSUER}"]')).client_id == "ci_live_1"


def test_a_client_id_beside_it_is_its_own() -> None:
    assert read(signed(), "ci_live_1").client_id == "ci_live_1"
    assert fault_of(signed(), "ci_live_2") == AssertionFault.OTHER_CLIENT


@pytest.mark.parametrize(
    ("client_id", "assertion", "recorded"),
    [
        ("ci_live_2", signed(), "ci_live_2"),
        ("ci_live_2", "x", "ci_live_2"),
        ("", signed(), "ci_live_1"),
        ("", signed({"alg": '"none"'}, aud="1"), ""),
        *(("", text, "") for text in ("x", "x.!.y", "")),
    ],
)
def test_a_request_that_cannot_be_read_is_recorded_by_the_client_it_names(
    client_id: str, assertion: str, recorded: str
) -> None:
    assert SentAssertion(client_id, assertion, JWT_BEARER).client_id == recorded


def test_both_parameters_must_be_there() -> None:
    sent = SentAssertion("", "a", JWT_BEARER)
    assert sent.parameters == {"client_assertion": "a", "client_assertion_type": JWT_BEARER}


def test_all_assertions_of_a_client_with_one_jti_are_one_use() -> None:
    first, again = read(signed()), read(signed(exp="3000"))
    other_jti = read(signed(jti='"y"'))
    other_client = read(signed(iss='"c"', sub='"c"'))
    assert first.use_id == again.use_id
    assert len({first.use_id, other_jti.use_id, other_client.use_id}) == 3
    # The key of a denial is another one for each assertion.
    assert len({one.denial_key for one in (first, again, other_jti, other_client)}) == 4
    assert first.denial_key == read(signed()).denial_key


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c.d", "...."])
def test_three_parts_are_a_jws(text: str) -> None:
    with pytest.raises(UnreadableJws):
        parts_of(text)


@pytest.mark.parametrize(
    "part",
    [
        *("A", "A A", "AA\n", "AA==A", "é", "A!AA", "AAAAA", "\ud800", "AA\0A"),
        *("A+AA", "A/AA"),  # of base64
        *("AA==", "AAA="),  # padding
    ],
)
def test_only_base64url_is_read(part: str) -> None:
    with pytest.raises(UnreadableJws):
        read_bytes(part)


@pytest.mark.parametrize("raw", [b"", b"a", b"ab", b"abc", b"\xfb\xff\xfe", bytes(range(256))])
def test_bytes_of_any_length_are_read_without_padding(raw: bytes) -> None:
    assert read_bytes(encode(raw).decode()) == raw


@pytest.mark.parametrize(
    "raw", [b"", b"x", b"[]", b"null", b'{"alg":1}', b'{"alg":"\xff"}', b"[" * 2_000]
)
def test_what_is_no_object_of_this_shape_is_not_read(raw: bytes) -> None:
    kind: Any = Header
    with pytest.raises(UnreadableJws):
        read_json(encode(raw).decode(), kind)
