"""Whose token is bound to the certificate of the connection, and which certificates bind. Pure."""

from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from msgspec.structs import replace

from taxpayers.facts.token_binding import UNBOUND, Confirmation, TokenBinding
from taxpayers.facts.values import Facts
from taxpayers.rules import Refused
from tests.certificates.certificate_erp import certificate
from tests.endpoint.test_rules import CLIENT, SECRET
from tokens.client_auth.authenticated import AuthenticatedClient, Method
from tokens.client_auth.certificate import CertificateHeaders, read_certificate
from tokens.client_auth.tls_client_auth import with_certificate


@cache
def sent(verified: str = "SUCCESS") -> CertificateHeaders:
    return CertificateHeaders(escaped_pem=certificate().escaped, verified=verified)


def now() -> datetime:
    return read_certificate(sent()).valid_from + timedelta(minutes=1)


def client(method: Method, binding: str) -> AuthenticatedClient:
    secret = replace(SECRET, expires_at=now() + timedelta(days=1))
    return AuthenticatedClient(method, Facts(replace(CLIENT, token_binding=binding), secret))


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("binding", [*TokenBinding, "other"])
def test_a_token_is_bound_where_it_must_be_and_where_the_client_logs_in_with_it(
    method: Method, binding: str
) -> None:
    one = client(method, binding)
    is_bound = binding == "tls" or (binding == "" and method == "tls_client_auth")
    bound = Confirmation(TokenBinding.TLS, read_certificate(sent()).thumbprint)
    found = with_certificate(one, sent(), now())
    assert found == replace(one, confirmation=bound if is_bound else UNBOUND)
    assert with_certificate(one, None, now()) == one


def reason_of(one: AuthenticatedClient, headers: CertificateHeaders, at: datetime) -> str:
    with pytest.raises(Refused) as refused:
        with_certificate(one, headers, at)
    return f"{refused.value.reason} {refused.value.detail}".strip()


def test_a_certificate_that_cannot_be_used_binds_nothing() -> None:
    one = client(Method.CLIENT_SECRET_POST, "tls")
    wrong = "malformed_credentials certificate"
    assert reason_of(one, sent("FAILED:x"), now()) == f"{wrong}_not_verified"
    early = now() - timedelta(days=1)
    assert reason_of(one, sent(), early) == f"{wrong}_not_yet_valid"
    # A client that is not bound to it may send anything.
    for method in (Method.CLIENT_SECRET_POST, Method.PRIVATE_KEY_JWT):
        free = client(method, "")
        assert with_certificate(free, sent("FAILED:x"), early) == free


def test_a_secret_that_has_ended_is_named_before_the_certificate() -> None:
    one = client(Method.CLIENT_SECRET_POST, "tls")
    revoked = replace(one.facts.credential, revoked_at=datetime(2026, 1, 1, tzinfo=UTC))
    ended = replace(one, facts=replace(one.facts, credential=revoked))
    assert reason_of(ended, sent("FAILED:x"), now()) == "secret_revoked"
