"""Tokens that are bound to a certificate: who gets them, and who can use them (RFC 8705 3)."""

import base64
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from taxpayers.facts.token_binding import Confirmation, TokenBinding
from taxpayers.models import SystemUser
from taxpayers.services import ServiceError, bind_tokens
from tests.certificates.addresses import MTLS_URL, PROXY, STRANGER
from tests.certificates.certificate_erp import (
    BY,
    CertificateErp,
    authority,
    certificate,
    new_certificate_erp,
    nginx,
    rfc9440,
)
from tests.client_auth.key_erp import new_key_erp, new_pair
from tests.dpop.dpop_erp import DpopErp
from tests.introspection.api import new_api
from tests.servers.certificates import IssuedCertificate
from tests.support.erp import Erp, assert_refused, claims_of, new_erp
from tests.support.factories import SystemUserFactory
from tests.tokens.test_protected_api import authorization
from tokens.access_tokens.issuing import issue_access_token
from tokens.dpop.proof import hash_of_token
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db
ME, CREDENTIALS = "/api/v1/me", "/api/v1/credentials/current"
OTHER = certificate("CN=other,C=MY")


@pytest.fixture
def erp() -> CertificateErp:
    return new_certificate_erp()


def thumbprint(issued: IssuedCertificate) -> str:
    digest = hashlib.sha256(issued.der).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def bind(user: SystemUser, binding: TokenBinding = TokenBinding.TLS) -> None:
    bind_tokens(system_user=user, binding=binding, reason="r", by=BY, at=timezone.now())


def token_of(response: Any) -> str:
    token: str = json.loads(response.content)["access_token"]
    return token


def reason(response: Any) -> str:
    return LoginEvent.objects.get(pk=response["correlationId"]).reason


# --- Who gets one ---------------------------------------------------------------------------------


def test_a_login_with_a_certificate_gives_a_token_that_is_bound_to_it(
    erp: CertificateErp,
) -> None:
    for headers in (nginx(erp.issued), rfc9440(erp.issued)):
        response = erp.login(headers=headers)
        assert json.loads(response.content)["token_type"] == "Bearer"
        assert claims_of(response)["cnf"] == {"x5t#S256": thumbprint(erp.issued)}
    renewed = authority().issue()
    assert claims_of(erp.login(renewed))["cnf"] == {"x5t#S256": thumbprint(renewed)}


@pytest.mark.parametrize("new", [new_erp, new_key_erp], ids=["secret", "key"])
def test_whoever_must_have_bound_tokens_needs_a_certificate(new: Any) -> None:
    client = new()
    assert "cnf" not in claims_of(client.login(headers=nginx(OTHER)))
    bind(client.system_user)
    response = client.login(headers=nginx(OTHER))
    assert claims_of(response)["cnf"] == {"x5t#S256": thumbprint(OTHER)}
    assert json.loads(response.content)["token_type"] == "Bearer"
    assert reason(client.login()) == "certificate_missing"


def test_without_one_the_answer_says_what_to_do() -> None:
    client = new_erp()
    bind(client.system_user)
    limit = {"X-Rate-Limit-Limit": "12", "X-Rate-Limit-Remaining": "11"}
    assert_refused(
        client.login(),
        reason="certificate_missing",
        status=400,
        error="invalid_request",
        says="mtls_endpoint_aliases",
        fixed_by="The developer of the ERP system",
        headers={**limit, "X-Client-Secret-Expires-At": ".*"},
    )


def test_a_stranger_is_not_told_that_a_certificate_is_missing() -> None:
    client = new_erp()
    bind(client.system_user)
    wrong = Erp(client.client_id, new_erp().client_secret)
    for headers in ({}, nginx(OTHER)):
        assert reason(wrong.login(headers=headers)) == "invalid_credentials"


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        (nginx(OTHER, "FAILED:expired"), "not accepted by the proxy"),
        ({"Client-Cert": "x", "SSL-Client-Verify": "SUCCESS"}, "cannot be read"),
        (
            nginx(authority().issue(begins=datetime(2026, 1, 1, tzinfo=UTC))),
            "has expired by the clock",
        ),
    ],
    ids=["not verified", "unreadable", "expired"],
)
def test_a_certificate_that_cannot_be_used_binds_nothing(headers: Any, says: str) -> None:
    client = new_erp()
    bind(client.system_user)
    response = client.login(headers=headers)
    assert response.status_code == 400
    assert says in json.loads(response.content)["error_description"]
    assert reason(response) == "malformed_credentials"


def test_who_must_prove_a_key_is_not_bound_to_a_certificate(erp: CertificateErp) -> None:
    bind(erp.system_user, TokenBinding.DPOP)
    assert reason(erp.login()) == "dpop_proof_missing"
    # The address that was called is the one for certificates, and its proof names it.
    key = DpopErp(Erp(erp.client_id, "", erp.system_user), new_pair())
    address = f"{MTLS_URL}/connect/token"
    key.nonce = erp.login(more={"DPoP": key.proof(htu=address)})["DPoP-Nonce"]
    response = erp.login(more={"DPoP": key.proof(htu=address)})
    assert json.loads(response.content)["token_type"] == "DPoP"
    assert set(claims_of(response)["cnf"]) == {"jkt"}
    token, path = token_of(response), f"{MTLS_URL}{ME}"
    proof = key.proof(htm="GET", htu=path, ath=hash_of_token(token), nonce=None)
    opened = call(ME, token, nginx(erp.issued) | {"DPoP": proof}, scheme="DPoP")
    assert opened.status_code == 200
    public = erp.login(more={"DPoP": key.proof()})  # names the other address
    assert json.loads(public.content)["error"] == "invalid_dpop_proof"


def test_an_expired_secret_is_named_before_the_certificate() -> None:
    client = new_erp()
    bind(client.system_user)
    now = timezone.now()
    client.system_user.credentials.update(
        created_at=now - timedelta(days=2), expires_at=now - timedelta(days=1)
    )
    for headers in ({}, nginx(OTHER, "FAILED:x")):
        assert reason(client.login(headers=headers)) == "secret_expired"


def test_nobody_is_bound_to_certificates_where_none_is_asked_for(settings: Settings) -> None:
    settings.MTLS_URL = ""
    with pytest.raises(ServiceError, match="must set MTLS_URL first"):
        bind(SystemUserFactory.create())


def test_introspection_shows_what_a_token_is_bound_to(erp: CertificateErp) -> None:
    api = new_api()
    answer = json.loads(api.introspect(token_of(erp.login())).content)
    assert answer["active"] is True
    assert answer["token_type"] == "Bearer"
    assert answer["cnf"] == {"x5t#S256": thumbprint(erp.issued)}
    unbound = json.loads(api.introspect(token_of(new_erp().login())).content)
    assert "cnf" not in unbound


# --- Who can use it -------------------------------------------------------------------------------


def call(path: str, token: str, headers: Any, peer: str = PROXY, scheme: str = "Bearer") -> Any:
    sent = {"Authorization": f"{scheme} {token}", **headers}
    return Client().get(path, headers=sent, REMOTE_ADDR=peer)


@pytest.mark.parametrize("path", [ME, CREDENTIALS])
def test_with_its_certificate_a_token_opens_the_services_own_api(
    erp: CertificateErp, path: str
) -> None:
    token = token_of(erp.login())
    for headers in (nginx(erp.issued), rfc9440(erp.issued)):
        assert call(path, token, headers).status_code == 200


@pytest.mark.parametrize("path", [ME, CREDENTIALS])
@pytest.mark.parametrize(
    ("headers", "peer"),
    [
        ({}, PROXY),
        (nginx(OTHER), PROXY),
        (nginx(certificate(), "FAILED:expired"), PROXY),
        (nginx(certificate(), ""), PROXY),
        (rfc9440(certificate()) | nginx(certificate()), PROXY),
        ({"SSL-Client-Cert": "x", "SSL-Client-Verify": "SUCCESS"}, PROXY),
        (nginx(certificate()), STRANGER),
        (rfc9440(certificate()) | {"X-Forwarded-For": PROXY}, STRANGER),
        (nginx(authority().issue()), PROXY),  # the same subject, another key
    ],
)
def test_in_other_hands_it_opens_nothing(
    erp: CertificateErp, path: str, headers: Any, peer: str
) -> None:
    response = call(path, token_of(erp.login()), headers, peer)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    body = json.loads(response.content)
    assert body["error"] == "invalid_token"
    assert "bound to a TLS certificate of its client" in body["error_description"]
    assert "mtls_endpoint_aliases" in body["error_description"]


def test_without_an_address_for_certificates_it_opens_nothing(
    erp: CertificateErp, settings: Settings
) -> None:
    token = token_of(erp.login())
    settings.MTLS_URL = ""
    assert call(ME, token, nginx(erp.issued)).status_code == 401


def test_a_certificate_that_has_expired_opens_nothing() -> None:
    old = authority().issue("CN=old,C=MY", begins=datetime(2026, 1, 1, tzinfo=UTC))
    bound = Confirmation(TokenBinding.TLS, thumbprint(old))
    granted = replace(authorization(), confirmation=bound)
    token = issue_access_token(granted, jti=uuid4(), status_index=0).encoded
    response = call(ME, token, nginx(old))
    assert response.status_code == 401
    assert "bound to a TLS certificate" in json.loads(response.content)["error_description"]


def test_it_is_no_token_that_is_bound_to_a_key(erp: CertificateErp) -> None:
    token = token_of(erp.login())
    assert call(ME, token, nginx(erp.issued), scheme="DPoP").status_code == 401


def test_an_unbound_token_needs_no_certificate() -> None:
    token = token_of(new_erp().login())
    for headers in ({}, nginx(OTHER), nginx(OTHER, "FAILED:x")):
        assert call(ME, token, headers).status_code == 200


def test_a_client_sees_and_removes_its_certificate(erp: CertificateErp) -> None:
    token = token_of(erp.login())
    headers = {"Authorization": f"Bearer {token}", **nginx(erp.issued)}
    (shown,) = json.loads(call(CREDENTIALS, token, nginx(erp.issued)).content)["secrets"]
    row = erp.system_user.credentials.get()
    assert shown["certificate"] == row.certificate_name
    ended = Client().delete(f"{CREDENTIALS}?revoke_last=true", headers=headers, REMOTE_ADDR=PROXY)
    assert ended.status_code == 200
    assert reason(erp.login()) == "secret_revoked"
    assert call(ME, token, nginx(erp.issued)).status_code == 401
