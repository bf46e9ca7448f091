"""What everybody may read in the OpenAPI description: metadata, keys, status lists, readiness."""

import json
from collections.abc import Mapping

from django.http import HttpRequest

from identity.developers.openapi.errors import REF_ERROR, read_only
from identity.developers.openapi.parts import (
    TEXT,
    TEXTS,
    URI,
    Part,
    list_of,
    record,
    reference,
    response,
)
from identity.health import public_body
from tokens.discovery import metadata
from tokens.http import error_body
from tokens.status_lists.format import MEDIA_TYPE

METADATA = {
    **record(
        issuer=URI,
        token_endpoint=URI,
        jwks_uri=URI,
        scopes_supported=TEXTS,
        grant_types_supported=TEXTS,
        token_endpoint_auth_methods_supported=TEXTS,
        introspection_endpoint=URI,
        revocation_endpoint=URI,
        status_list_aggregation_endpoint=URI,
    ),
    "description": "RFC 8414 section 2, and the addresses of this service alone.",
}
JWKS = record(keys=list_of(record(kty=TEXT, kid=TEXT, alg=TEXT, use=TEXT)))
STATUS_LISTS = record(status_lists=list_of(URI))
HEALTH = record(
    status={"enum": ["ok", "unavailable"]}, version=TEXT, environment={"enum": ["live", "test"]}
)
_KEY = {
    "kty": "EC",
    "crv": "P-256",
    "x": "…",
    "y": "…",
    "kid": "4lQ0…",
    "alg": "ES256",
    "use": "sig",
}


def published_paths(auth_url: str) -> Part:
    """All that needs no credentials."""
    about_metadata = _get(
        "Metadata of this service",
        response("Metadata", reference("schemas", "Metadata"), example=_metadata()),
    )
    return {
        "/.well-known/oauth-authorization-server": {
            "get": {"operationId": "getMetadata", **about_metadata}
        },
        "/.well-known/openid-configuration": {
            "get": {
                "operationId": "getMetadataForOpenidClients",
                **about_metadata,
                "description": "The same, for clients that look only here. This is not OpenID"
                " Connect.",
            }
        },
        "/.well-known/jwks.json": {
            "get": {
                "operationId": "getKeys",
                **_get(
                    "The keys that sign tokens",
                    response("Keys", reference("schemas", "Keys"), example={"keys": [_KEY]}),
                    "The keys",
                ),
            }
        },
        "/status": {
            "get": {
                "operationId": "getStatusLists",
                **_get(
                    "The addresses of all status lists",
                    response(
                        "Addresses",
                        reference("schemas", "StatusLists"),
                        example={"status_lists": [f"{auth_url}/status/0"]},
                    ),
                    "The status lists",
                ),
            }
        },
        "/status/{number}": {
            "get": {
                "operationId": "getStatusList",
                **_get(
                    "One signed status list",
                    response("The list, as a JWT", TEXT, media_type=MEDIA_TYPE),
                    "The status lists",
                    {"404": _not_found("There is no such status list.")},
                ),
                "description": "Token Status List (draft-ietf-oauth-status-list).",
                "parameters": [
                    {
                        "name": "number",
                        "in": "path",
                        "required": True,
                        "schema": {"type": "string", "pattern": "^[0-9]{1,6}$"},
                        "example": "0",
                    }
                ],
            }
        },
        "/health": {
            "get": {
                "operationId": "getHealth",
                **_get(
                    "Is the service ready, and which version is it",
                    response(
                        "Ready",
                        reference("schemas", "Health"),
                        example=json.loads(public_body(passed=True)),
                    ),
                    more={
                        "503": response(
                            "Not ready",
                            reference("schemas", "Health"),
                            example=json.loads(public_body(passed=False)),
                        )
                    },
                ),
            }
        },
        "/health/live": {
            "get": {
                "operationId": "getLiveness",
                **_get(
                    "Does this process answer",
                    response("Yes", record(status={"const": "ok"}), example={"status": "ok"}),
                ),
            }
        },
    }


def _get(
    summary: str, success: Part, what: str = "", more: Mapping[str, Part] | None = None
) -> Part:
    return {
        "tags": ["Public"],
        "summary": summary,
        "security": [],
        "responses": {"200": success, **read_only(what), **(more or {})},
    }


def _not_found(text: str) -> Part:
    return response("Not Found", REF_ERROR, example=error_body("not_found", text))


def _metadata() -> Part:
    """Those of this very service."""
    request = HttpRequest()
    request.method = "GET"
    example: Part = json.loads(metadata(request).content)
    return example
