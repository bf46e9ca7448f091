"""The modules of the OpenID Foundation's FAPI2 final plan about certificates, by their names.

Those that look at the token endpoint and at a protected API, in the plan's variant with client
credentials, `tls_client_auth` and certificate-bound tokens.
"""

import json
from typing import Any

import pytest
from django.test import Client

from tests.certificates.addresses import PROXY
from tests.certificates.certificate_erp import (
    CertificateErp,
    authority,
    certificate,
    new_certificate_erp,
    nginx,
)
from tests.support.erp import claims_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> CertificateErp:
    return new_certificate_erp()


def resource(token: str, headers: Any) -> Any:
    sent = {"Authorization": f"Bearer {token}", **headers}
    return Client().get("/api/v1/me", headers=sent, REMOTE_ADDR=PROXY)


def token_of(erp: CertificateErp) -> str:
    token: str = json.loads(erp.login().content)["access_token"]
    return token


def test_discovery_end_point_verification(settings: Any) -> None:
    metadata = Client().get("/.well-known/oauth-authorization-server").json()
    assert "tls_client_auth" in metadata["token_endpoint_auth_methods_supported"]
    assert "self_signed_tls_client_auth" not in metadata["token_endpoint_auth_methods_supported"]
    assert metadata["tls_client_certificate_bound_access_tokens"] is True
    aliases = metadata["mtls_endpoint_aliases"]
    assert aliases["token_endpoint"] == f"{settings.MTLS_URL}/connect/token"


def test_client_credentials_happy_flow(erp: CertificateErp) -> None:
    response = erp.login()
    assert json.loads(response.content)["token_type"] == "Bearer"
    assert set(claims_of(response)["cnf"]) == {"x5t#S256"}
    assert resource(token_of(erp), nginx(erp.issued)).status_code == 200


def test_ensure_holder_of_key_required(erp: CertificateErp) -> None:
    """Without a certificate the token endpoint gives no token."""
    response = erp.login(headers={"SSL-Client-Verify": "NONE"})
    assert response.status_code == 400
    assert json.loads(response.content)["error"] in ("invalid_client", "invalid_request")


def test_ensure_wrong_certificate_at_token_endpoint_fails(erp: CertificateErp) -> None:
    response = erp.login(certificate("CN=second client,C=MY"))
    assert response.status_code == 400
    assert json.loads(response.content)["error"] == "invalid_client"


def test_ensure_client_id_in_token_endpoint(erp: CertificateErp) -> None:
    other = new_certificate_erp(certificate("CN=second client,C=MY"))
    response = erp.login(client_id=other.client_id)
    assert json.loads(response.content)["error"] == "invalid_client"


def test_ensure_mtls_holder_of_key_required_at_the_resource(erp: CertificateErp) -> None:
    token = token_of(erp)
    for headers in ({}, nginx(certificate("CN=second client,C=MY")), nginx(authority().issue())):
        response = resource(token, headers)
        assert (response.status_code, response.json()["error"]) == (401, "invalid_token")
