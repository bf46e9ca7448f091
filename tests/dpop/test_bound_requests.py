"""How a token must be sent to an API, by what it is bound to (RFC 9449 7, RFC 8705 3). Pure."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from taxpayers.facts.token_binding import UNBOUND, Confirmation
from tests.certificates.certificate_erp import certificate, nginx
from tests.client_auth.signer import OTHER, RIGHT, Signer, signed_proof
from tests.introspection.test_introspection import TOKEN
from tests.servers.certificates import PROXY
from tokens.access_tokens.verification import InvalidToken
from tokens.dpop.proof import InvalidProof, Proof, hash_of_token
from tokens.resource_server.authentication import api_request
from tokens.resource_server.possession import BEARER, DPOP, MustBeBound, check_possession

pytestmark = pytest.mark.usefixtures("takes_certificates")
ENCODED = "the.encoded.token"
BASE, PATH = "https://id.example.org", "/api/v1/me"
VALID_FROM = certificate().certificate.not_valid_before_utc
AT = VALID_FROM + timedelta(minutes=1)
THUMBPRINT = certificate().thumbprint
KEY, CERTIFICATE = Confirmation("dpop", RIGHT.thumbprint), Confirmation("tls", THUMBPRINT)


def proof(signer: Signer = RIGHT, *, method: str = "GET", **claims: bytes) -> dict[str, str]:
    said = {"ath": f'"{hash_of_token(ENCODED)}"'.encode()} | claims
    return {"DPoP": signed_proof(f"{BASE}{PATH}", method=method, at=AT, signer=signer, **said)}


def check(
    scheme: str,
    confirmation: Confirmation,
    headers: dict[str, str] | None = None,
    *,
    at: datetime = AT,
    method: str = "GET",
) -> Proof | None:
    request = Request(
        APIRequestFactory().generic(method, PATH, headers=headers or {}, REMOTE_ADDR=PROXY)
    )
    token = replace(TOKEN, confirmation=confirmation)
    return check_possession(api_request(request, BASE), scheme, ENCODED, token, at)


def refused(scheme: str, confirmation: Confirmation, *sent: Any, **more: Any) -> InvalidToken:
    with pytest.raises(InvalidToken) as no:
        check(scheme, confirmation, *sent, **more)
    return no.value


def test_one_that_is_bound_to_nothing_is_a_bearer_token() -> None:
    for headers in ({}, proof(), nginx(certificate()), nginx(certificate(), "FAILED:x")):
        assert check(BEARER, UNBOUND, headers) is None
    assert "not bound to a key" in str(refused(DPOP, UNBOUND, proof()))


def test_one_that_is_bound_to_a_key_is_sent_with_a_proof() -> None:
    found = check(DPOP, KEY, proof())
    assert found is not None
    assert found.jti == "x"
    assert check(DPOP, KEY, proof(method="POST"), method="POST")
    without = refused(BEARER, KEY, proof())
    assert isinstance(without, MustBeBound)
    assert "bound to a key of its client" in str(without)


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ({}, "proof_unreadable"),
        ({"DPoP": "x"}, "proof_unreadable"),
        (proof(method="POST"), "proof_htm"),
        (proof(htu=b'"https://id.example.org/api/v1/you"'), "proof_htu"),
        (proof(ath=b'""'), "proof_of_other_token"),
        (proof(ath=b'"\xc3\xa9"'), "proof_of_other_token"),
        (proof(ath=f'"{hash_of_token("another")}"'.encode()), "proof_of_other_token"),
        (proof(OTHER), "proof_of_other_key"),
    ],
)
def test_the_proof_is_for_this_request_this_token_and_this_key(
    headers: dict[str, str], fault: str
) -> None:
    with pytest.raises(InvalidProof) as no:
        check(DPOP, KEY, headers)
    assert no.value.fault == fault


def test_one_that_is_bound_to_a_certificate_comes_with_it() -> None:
    assert check(BEARER, CERTIFICATE, nginx(certificate())) is None
    assert "not bound to a key" in str(refused(DPOP, CERTIFICATE, nginx(certificate())))


def test_an_unknown_binding_is_proved_by_nothing() -> None:
    unknown = Confirmation("other", THUMBPRINT)
    for headers in ({}, nginx(certificate()), proof()):
        refused(BEARER, unknown, headers)
        refused(DPOP, unknown, headers)
