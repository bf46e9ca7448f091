"""`/api/v1/` in the OpenAPI description: what a client reads and ends with its own token."""

from identity.developers.examples import REFERENCE
from identity.developers.openapi import own_examples
from identity.developers.openapi.errors import REF_ERROR, header_refs, malformed
from identity.developers.openapi.parts import TEXT, UUID, Part, query, reference, response
from tokens.http import error_body

_LAST_SECRET = "This is the last live secret of this client: …"


def own_paths() -> Part:
    """Each needs an access token of the client."""
    return {
        "/api/v1/me": {
            "get": _operation(
                "whoAmI",
                "Which taxpayer a token represents, and what it allows",
                response("The token", reference("schemas", "Me"), example=own_examples.me()),
            )
        },
        "/api/v1/credentials/current": {
            "get": _operation(
                "getCredentials",
                "Your client, its secrets and its limit",
                response(
                    "The client",
                    reference("schemas", "Credentials"),
                    example=own_examples.credentials(),
                ),
            ),
            "delete": _operation(
                "revokeSecret",
                "End the secret that issued this token",
                response(
                    "The secret is revoked",
                    reference("schemas", "Revoked"),
                    example=own_examples.revoked(),
                ),
                [
                    query(
                        "revoke_last",
                        "`true`: also if it is the last live one.",
                        {"enum": ["true", "false"]},
                    )
                ],
                {"409": _error("It is your last live secret", "conflict", _LAST_SECRET)},
            ),
        },
        "/api/v1/permissions": {
            "get": _operation(
                "getPermissions",
                "For whom you may act",
                response(
                    "A page",
                    reference("schemas", "Permissions"),
                    example=own_examples.permissions(),
                ),
                [
                    query("taxpayer", "Only what this one granted: TIN or TIN:ROB.", TEXT),
                    query(
                        "limit",
                        "Entries of a page.",
                        {"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
                    ),
                    query("cursor", "`next_cursor` of the page before.", TEXT),
                ],
                {
                    "403": _error(
                        "The token is for another taxpayer",
                        "insufficient_scope",
                        "This token is for another taxpayer alone, …",
                        "WWW-Authenticate",
                    )
                },
            )
        },
        "/api/v1/logins/{reference}/explanation": {
            "post": _operation(
                "explainLogin",
                "Why one of your logins ended as it did",
                response(
                    "Every check",
                    reference("schemas", "Explanation"),
                    example=own_examples.explanation(),
                ),
                [
                    {
                        "name": "reference",
                        "in": "path",
                        "required": True,
                        "description": "The `correlationId` of the login.",
                        "schema": UUID,
                        "example": str(REFERENCE),
                    }
                ],
                {
                    "404": _error(
                        "You have no such login",
                        "not_found",
                        "No login of this client has this reference. …",
                    )
                },
            )
        },
    }


def _operation(
    name: str,
    summary: str,
    success: Part,
    parameters: list[Part] | None = None,
    errors: Part | None = None,
) -> Part:
    return {
        "operationId": name,
        "tags": ["Clients"],
        "summary": summary,
        "security": [{"bearer": []}],
        **({"parameters": parameters} if parameters else {}),
        "responses": {
            "200": success,
            "400": malformed(),
            "401": _error(
                "No token, a wrong one, or one that is no longer active",
                "invalid_token",
                "No access token was sent. Send the header Authorization: Bearer, followed by a"
                " token.",
                "WWW-Authenticate",
            ),
            "405": response("Method Not Allowed", REF_ERROR, headers=header_refs("Allow")),
            "429": response("Too many requests", REF_ERROR, headers=header_refs("Retry-After")),
            "503": response("Service Unavailable", REF_ERROR, headers=header_refs("Retry-After")),
            **(errors or {}),
        },
    }


def _error(description: str, error: str, text: str, *headers: str) -> Part:
    return response(
        description, REF_ERROR, headers=header_refs(*headers), example=error_body(error, text)
    )
