"""Metadata and published keys, for clients and verifiers (contract 2, RFC 8414, RFC 7517)."""

import logging
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from taxpayers.client_keys import ALGORITHM_NAMES
from tokens.client_auth.authenticated import SECRET_METHODS, Method
from tokens.http import error_response, read_only
from tokens.keys.ring import ALGORITHMS
from tokens.keys.signer import current_key_ring
from tokens.request.token_request import GRANT_TYPE

logger = logging.getLogger("tokens.keys")

# Five minutes: half of the time between the publication of a new key and its first signature.
_PUBLIC = {"Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*"}
_RETRY_SECONDS = "5"


@read_only
def metadata(request: HttpRequest) -> HttpResponse:
    """`GET /.well-known/oauth-authorization-server`: RFC 8414 section 2."""
    return JsonResponse(_metadata(), headers=_PUBLIC)


@read_only
def jwks(request: HttpRequest) -> HttpResponse:
    """`GET /.well-known/jwks.json`: every key that may have signed an unexpired token."""
    at = datetime.now(UTC)
    try:
        keys = current_key_ring(at).published(at)
    except DatabaseError:
        logger.exception("no signing keys to publish")
        text = "The keys cannot be read; try again."
        return error_response(503, "temporarily_unavailable", text, {"Retry-After": _RETRY_SECONDS})
    return JsonResponse({"keys": [key.public_jwk for key in keys]}, headers=_PUBLIC)


def _metadata() -> dict[str, Any]:
    always = {
        "issuer": settings.AUTH_URL,
        "token_endpoint": _absolute("token"),
        "jwks_uri": _absolute("jwks"),
        "service_documentation": f"{settings.AUTH_URL}/",
        "scopes_supported": list(settings.SCOPES),
        "response_types_supported": [],  # there is no authorization endpoint
        "grant_types_supported": [GRANT_TYPE],
        "token_endpoint_auth_methods_supported": _methods(),
        "token_endpoint_auth_signing_alg_values_supported": list(ALGORITHM_NAMES),
        "dpop_signing_alg_values_supported": list(ALGORITHM_NAMES),
        "introspection_endpoint": _absolute("introspect"),
        "introspection_endpoint_auth_methods_supported": list(SECRET_METHODS),
        "introspection_signing_alg_values_supported": list(ALGORITHMS),
        "revocation_endpoint": _absolute("revocation"),
        "revocation_endpoint_auth_methods_supported": _methods(),
        "revocation_endpoint_auth_signing_alg_values_supported": list(ALGORITHM_NAMES),
        "status_list_aggregation_endpoint": _absolute("status_lists"),
        # Only of this service (RFC 8414 section 2 allows more).
        "api_teams_documentation": f"{settings.AUTH_URL}/api-teams",
        "credentials_endpoint": _absolute("credentials"),
        "granted_permissions_endpoint": _absolute("permissions"),
        "login_explanation_endpoint": _absolute("explanation", "{reference}"),
    }
    return always | _certificates(always)


def _methods() -> list[str]:
    return [method for method in Method if settings.MTLS_URL or method != Method.TLS_CLIENT_AUTH]


def _certificates(always: dict[str, Any]) -> dict[str, Any]:
    """What RFC 8705 adds (sections 3.3 and 5), where clients can present certificates at all."""
    if not settings.MTLS_URL:
        return {}
    bound = {"tls_client_certificate_bound_access_tokens": True}
    if settings.MTLS_URL == settings.AUTH_URL:
        return bound
    return bound | {
        "mtls_endpoint_aliases": {
            name: always[name].replace(settings.AUTH_URL, settings.MTLS_URL, 1)
            for name in (
                *("token_endpoint", "revocation_endpoint", "credentials_endpoint"),
                *("granted_permissions_endpoint", "login_explanation_endpoint"),
            )
        }
    }


def _absolute(name: str, *parts: str) -> str:
    return f"{settings.AUTH_URL}{unquote(reverse(name, args=parts))}"
