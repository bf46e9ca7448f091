"""The OpenAPI 3.1 description of every public address, made from the tables of this service.

drf-spectacular describes views of the REST framework; the login, introspection and metadata are
none, and what `/api/v1/` answers has no serializers. So each path is written down here, and tests
compare it with real answers.
"""

from functools import cache
from typing import Any

from django.conf import settings
from django.urls import is_valid_path

from identity.developers.openapi import (
    errors,
    files,
    login,
    own,
    own_schemas,
    published,
    sandbox,
)
from identity.developers.openapi.parts import Part

_DESCRIPTION = (
    "Access tokens for the e-invoicing APIs. An ERP system logs in with its client ID and secret,"
    " and uses the token for all calls until shortly before it expires. Guide: {auth_url}/ and"
    " {auth_url}/errors/"
)


@cache
def document(auth_url: str) -> dict[str, Any]:
    """The description of the service at this address."""
    has_sandbox = is_valid_path("/sandbox")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Access tokens for e-invoicing",
            "version": settings.VERSION,
            "description": _DESCRIPTION.format(auth_url=auth_url),
        },
        "servers": [{"url": auth_url}],
        "tags": [
            {"name": "Clients", "description": "For ERP systems."},
            {"name": "Protected APIs", "description": "For APIs that accept the tokens."},
            {"name": "Public", "description": "Without credentials."},
            {"name": "Files", "description": "For tests of your ERP system."},
            *(sandbox.TAGS if has_sandbox else ()),
        ],
        "paths": {
            "/connect/token": login.token_path(auth_url),
            "/connect/revocation": login.revocation_path(),
            "/connect/introspect": login.introspection_path(),
            **own.own_paths(),
            **published.published_paths(auth_url),
            **files.file_paths(),
            **(sandbox.sandbox_paths() if has_sandbox else {}),
        },
        "components": {
            "schemas": _schemas() | (sandbox.SCHEMAS if has_sandbox else {}),
            "headers": {**errors.HEADERS, **login.HEADERS},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "Client ID and secret, instead of those in the form.",
                },
            },
        },
    }


def _schemas() -> Part:
    return {
        "Error": errors.ERROR,
        "Token": login.TOKEN,
        "Introspection": login.INTROSPECTION,
        "Me": own_schemas.ME,
        "Credentials": own_schemas.CREDENTIALS,
        "Secret": own_schemas.SECRET,
        "Revoked": own_schemas.REVOKED,
        "Permissions": own_schemas.PERMISSIONS,
        "Explanation": own_schemas.EXPLANATION,
        "Metadata": published.METADATA,
        "Keys": published.JWKS,
        "StatusLists": published.STATUS_LISTS,
        "Health": published.HEALTH,
    }
