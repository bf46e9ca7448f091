"""A login with a client certificate, and the tokens that are bound to it (RFC 8705)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from taxpayers.credentials import new_client_id
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from taxpayers.services import bind_tokens
from tests.certificates.certificate_erp import (
    CertificateErp,
    authority,
    certificate,
    new_certificate_erp,
    nginx,
    rfc9440,
)
from tests.client_auth.key_erp import new_key_erp, new_pair
from tests.dpop.dpop_erp import DpopErp
from tests.introspection.api import Api, token_of
from tests.servers.certificates import MTLS_URL, PROXY, STRANGER
from tests.support.erp import Erp, claims_of, description_of, new_erp, reason_of
from tests.support.moments import why
from tokens.dpop.proof import hash_of_token

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("takes_certificates")]
ME, CREDENTIALS = "/api/v1/me", "/api/v1/credentials/current"
OTHER = certificate("CN=other,C=MY")


@pytest.fixture
def erp() -> CertificateErp:
    return new_certificate_erp()


def bind(user: SystemUser, binding: TokenBinding = TokenBinding.TLS) -> None:
    bind_tokens(system_user=user, binding=binding, **why())


@pytest.fixture
def bound() -> Erp:
    """It logs in with a secret, and its tokens must be bound to a certificate."""
    erp = new_erp()
    bind(erp.system_user)
    return erp


def test_a_login_with_a_certificate_gives_a_token_that_is_bound_to_it(
    erp: CertificateErp, api: Api
) -> None:
    renewed = authority().issue()
    for issued, headers in (
        (erp.issued, nginx(erp.issued)),
        (erp.issued, rfc9440(erp.issued)),
        (renewed, nginx(renewed)),
    ):
        response = erp.login(headers=headers)
        assert json.loads(response.content)["token_type"] == "Bearer"
        assert claims_of(response)["cnf"] == {"x5t#S256": issued.thumbprint}
    told = json.loads(api.introspect(token_of(erp)).content)
    assert (told["active"], told["token_type"]) == (True, "Bearer")
    assert told["cnf"] == {"x5t#S256": erp.issued.thumbprint}


@pytest.mark.parametrize("new", [new_erp, new_key_erp], ids=["secret", "key"])
def test_a_client_that_must_have_bound_tokens_needs_a_certificate(new: Any) -> None:
    client = new()
    bind(client.system_user)
    response = client.login(headers=nginx(OTHER))
    assert claims_of(response)["cnf"] == {"x5t#S256": OTHER.thumbprint}
    assert json.loads(response.content)["token_type"] == "Bearer"
    assert reason_of(client.login()) == "certificate_missing"


def test_who_must_prove_a_key_is_not_bound_to_a_certificate(erp: CertificateErp) -> None:
    bind(erp.system_user, TokenBinding.DPOP)
    assert reason_of(erp.login()) == "dpop_proof_missing"
    # The address that was called is the one for certificates, and its proof names it.
    key = DpopErp(Erp(erp.client_id, "", erp.system_user), new_pair())
    address = f"{MTLS_URL}/connect/token"
    key.nonce = erp.login(more={"DPoP": key.proof(htu=address)})["DPoP-Nonce"]
    response = erp.login(more={"DPoP": key.proof(htu=address)})
    assert json.loads(response.content)["token_type"] == "DPoP"
    assert set(claims_of(response)["cnf"]) == {"jkt"}
    token, path = json.loads(response.content)["access_token"], f"{MTLS_URL}{ME}"
    proof = key.proof(htm="GET", htu=path, ath=hash_of_token(token), nonce=None)
    assert call(ME, token, nginx(erp.issued) | {"DPoP": proof}, scheme="DPoP").status_code == 200
    public = erp.login(more={"DPoP": key.proof()})  # names the other address
    assert json.loads(public.content)["error"] == "invalid_dpop_proof"


def call(path: str, token: str, headers: Any, peer: str = PROXY, scheme: str = "Bearer") -> Any:
    sent = {"Authorization": f"{scheme} {token}", **headers}
    return Client().get(path, headers=sent, REMOTE_ADDR=peer)


STOLEN: list[tuple[dict[str, str], str]] = [
    ({}, PROXY),
    (nginx(OTHER), PROXY),
    (nginx(certificate(), "FAILED:expired"), PROXY),
    (rfc9440(certificate()) | nginx(certificate()), PROXY),
    ({"SSL-Client-Cert": "x", "SSL-Client-Verify": "SUCCESS"}, PROXY),
    (nginx(certificate()), STRANGER),
    (rfc9440(certificate()) | {"X-Forwarded-For": PROXY}, STRANGER),
    (nginx(authority().issue()), PROXY),  # the same subject, another key
]


@pytest.mark.parametrize("path", [ME, CREDENTIALS])
def test_in_other_hands_it_opens_nothing(
    erp: CertificateErp, path: str, settings: Settings
) -> None:
    token = token_of(erp)
    for headers in (nginx(erp.issued), rfc9440(erp.issued)):
        assert call(path, token, headers).status_code == 200
    for headers, peer in STOLEN:
        response = call(path, token, headers, peer)
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == 'Bearer error="invalid_token"'
        body = json.loads(response.content)
        assert body["error"] == "invalid_token"
        assert "bound to a TLS certificate of its client" in body["error_description"]
        assert "mtls_endpoint_aliases" in body["error_description"]
    settings.MTLS_URL = ""
    assert call(path, token, nginx(erp.issued)).status_code == 401


def test_the_clock_of_the_database_is_asked_too() -> None:
    old = authority().issue("CN=old", begins=datetime(2026, 1, 1, tzinfo=UTC))
    early = authority().issue("CN=old", begins=timezone.now() + timedelta(hours=1))
    erp = new_certificate_erp(old)
    assert "has expired by the clock" in description_of(erp.login())
    assert "not yet valid by the clock" in description_of(erp.login(early))
    # It tells a stranger nothing of the registry.
    unknown = CertificateErp(SystemUser(client_id=new_client_id("test")), old)
    assert description_of(unknown.login()) == description_of(erp.login())
