"""Metadata and published keys, for clients and verifiers (contract 2, RFC 8414, RFC 7517)."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from taxpayers.services import Author
from tests.support.answers import body_of, headers_of
from tests.support.outages import database_out_of_reach
from tokens.keys.ring import PUBLISHED_AHEAD
from tokens.keys.signer import REFRESH_INTERVAL, current_key_ring
from tokens.keys.store import rotate

METADATA, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
METHODS = ["client_secret_post", "client_secret_basic", "private_key_jwt"]
CLIENT_ALGORITHMS = ["ES256", "Ed25519", "EdDSA", "PS256"]
JWKS = "/.well-known/jwks.json"
PUBLIC = {
    "Content-Type": "application/json",
    "Cache-Control": "public, max-age=300",
    "Access-Control-Allow-Origin": "*",
}


def get(path: str, method: str = "GET", **headers: str) -> HttpResponse:
    return Client().generic(method, path, headers=headers)  # type: ignore[return-value]


@pytest.mark.parametrize("path", [METADATA, OPENID])
@pytest.mark.parametrize("base", ["https://identity.example.org", "http://10.0.0.1:8123/a/b"])
def test_the_metadata_has_these_members_only(path: str, base: str, settings: Settings) -> None:
    settings.AUTH_URL = base
    response = get(path, accept="text/html", host="evil.example.org")
    assert (response.status_code, headers_of(response)) == (200, PUBLIC)
    assert body_of(response) == {
        "issuer": base,
        "token_endpoint": f"{base}/connect/token",
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "service_documentation": f"{base}/",
        "api_teams_documentation": f"{base}/api-teams",
        "scopes_supported": ["InvoicingAPI"],
        "response_types_supported": [],
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": METHODS,
        "token_endpoint_auth_signing_alg_values_supported": CLIENT_ALGORITHMS,
        "dpop_signing_alg_values_supported": CLIENT_ALGORITHMS,
        "introspection_endpoint": f"{base}/connect/introspect",
        "introspection_endpoint_auth_methods_supported": [
            *("client_secret_post", "client_secret_basic")
        ],
        "introspection_signing_alg_values_supported": ["ES256", "RS256", "PS256"],
        "revocation_endpoint": f"{base}/connect/revocation",
        "revocation_endpoint_auth_methods_supported": METHODS,
        "revocation_endpoint_auth_signing_alg_values_supported": CLIENT_ALGORITHMS,
        "status_list_aggregation_endpoint": f"{base}/status",
        "credentials_endpoint": f"{base}/api/v1/credentials/current",
        "granted_permissions_endpoint": f"{base}/api/v1/permissions",
        "login_explanation_endpoint": f"{base}/api/v1/logins/{{reference}}/explanation",
    }


def test_the_metadata_name_certificates_and_where_clients_present_them(settings: Settings) -> None:
    settings.AUTH_URL, settings.MTLS_URL = "https://id.example.org", "https://mtls.id.example.org"
    metadata = body_of(get(METADATA))
    for endpoint in ("token", "revocation"):
        methods = metadata[f"{endpoint}_endpoint_auth_methods_supported"]
        assert methods == [*METHODS, "tls_client_auth"]
    assert metadata["tls_client_certificate_bound_access_tokens"] is True
    aliases = metadata["mtls_endpoint_aliases"]
    assert aliases == {
        name: url.replace("https://id.", "https://mtls.id.")
        for name, url in metadata.items()
        if name in aliases
    }
    assert aliases.keys() >= {"token_endpoint", "revocation_endpoint", "credentials_endpoint"}
    assert metadata["issuer"] == "https://id.example.org"
    assert metadata["jwks_uri"].startswith("https://id.example.org/")


@pytest.mark.django_db
def test_the_jwks_has_public_parts_only() -> None:
    at = datetime.now(UTC)
    first = current_key_ring(at - timedelta(days=1)).keys[0]
    waits = rotate(alg="PS256", by=Author("officer"), at=at)
    response = get(JWKS, accept="text/html")
    assert (response.status_code, headers_of(response)) == (200, PUBLIC)
    key, other = body_of(response)["keys"]
    assert set(key) == {"kty", "crv", "x", "y", "use", "alg", "kid"}
    assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")
    assert set(other) == {"kty", "n", "e", "use", "alg", "kid"}
    assert (key["kid"], other["kid"]) == (first.kid, waits.kid)


def test_every_copy_of_the_jwks_is_renewed_before_a_new_key_signs() -> None:
    max_age = re.search(r"max-age=(\d+)", PUBLIC["Cache-Control"])
    assert max_age is not None
    assert REFRESH_INTERVAL + timedelta(seconds=int(max_age[1])) < PUBLISHED_AHEAD


@pytest.mark.parametrize("path", [METADATA, OPENID, JWKS])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "NONSENSE"])
def test_any_other_method_is_answered_in_json(path: str, method: str) -> None:
    response = get(path, method, accept="text/html")
    assert response.status_code == 405
    assert headers_of(response) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "Allow": "GET, HEAD",
    }
    assert body_of(response) == {
        "error": "invalid_request",
        "error_description": "This address takes GET and HEAD only.",
    }


@pytest.mark.django_db
def test_keys_that_cannot_be_read_are_a_503_in_json() -> None:
    with database_out_of_reach():
        response = get(JWKS)
    assert response.status_code == 503
    assert headers_of(response) == {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "Retry-After": "5",
    }
    assert body_of(response)["error"] == "temporarily_unavailable"
