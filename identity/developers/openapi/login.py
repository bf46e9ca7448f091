"""`POST /connect/token`, introspection and revocation in the OpenAPI description."""

import json

from django.conf import settings

from identity.developers.examples import form_example, issued_example
from identity.developers.openapi.errors import header_refs, login_errors, own_errors
from identity.developers.openapi.parts import (
    BOOLEAN,
    MOMENT,
    TEXT,
    WHOLE_NUMBER,
    Part,
    described,
    header,
    record,
    reference,
    response,
)
from tokens.answers.response import ERP_SYSTEM, PROTECTED_API
from tokens.operations.introspection import SIGNED
from tokens.request.token_request import GRANT_TYPE
from tokens.system_warnings import HEADER as WARNING

_FORM = "application/x-www-form-urlencoded"
CREDENTIALS: Part = {
    "client_id": described(TEXT, "Begins with `ci_live_` or `ci_test_`."),
    "client_secret": described(
        {"type": "string", "format": "password"}, "Begins with `cs_live_` or `cs_test_`."
    ),
}
_ASSERTION: Part = {
    "client_assertion_type": {
        "const": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "description": "Only with `client_assertion`.",
    },
    "client_assertion": described(TEXT, "A signed JWT instead of a secret (RFC 7523)."),
}
HEADERS: Part = {
    "X-Represented-Taxpayer": header("The represented taxpayer: TIN or TIN:ROB.", TEXT),
    "X-Renew-At": header("When to fetch the next token; until then use this one.", MOMENT),
}
_OF_A_TOKEN = (
    *("X-Represented-Taxpayer", "X-Renew-At", "X-Client-Secret-Expires-At", "X-Rate-Limit-Limit"),
    *("X-Rate-Limit-Remaining", "DPoP-Nonce", WARNING, "correlationId", "Cache-Control"),
)
TOKEN = record(
    "scope",
    access_token=described(TEXT, "Send it as `Authorization: Bearer …` (or `DPoP …`)."),
    token_type={"enum": ["Bearer", "DPoP"]},
    expires_in=described(WHOLE_NUMBER, "Seconds."),
    scope=described(TEXT, "Only if it differs from what was asked for."),
)
INTROSPECTION = {
    **record(active=BOOLEAN),
    "description": "The claims of the token if it is active, and nothing else if it is not.",
}


def token_path(auth_url: str) -> Part:
    """The login."""
    success = issued_example(auth_url)
    return {
        "post": {
            "operationId": "logIn",
            "tags": ["Clients"],
            "summary": "Log in: fetch an access token",
            "description": "The OAuth 2.0 client credentials flow (RFC 6749 section 4.4). Store the"
            " token and use it for all calls, until shortly before it expires. Always JSON; no"
            " cookie, no redirect.",
            "security": [{}, {"basic": []}],
            "parameters": [_on_behalf_of(), _dpop()],
            "requestBody": form_body(
                {
                    "grant_type": {"const": GRANT_TYPE},
                    **CREDENTIALS,
                    "scope": described(TEXT, "Separated by one space; may be left out."),
                    **_ASSERTION,
                },
                required=["grant_type"],
                example=form_example(),
            ),
            "responses": {
                "200": response(
                    "A token",
                    reference("schemas", "Token"),
                    headers=header_refs(*_OF_A_TOKEN),
                    example=json.loads(success.body),
                ),
                **login_errors(auth_url),
            },
        }
    }


def introspection_path() -> Part:
    """RFC 7662."""
    active = response(
        "Whether it is active",
        reference("schemas", "Introspection"),
        headers=header_refs("correlationId", "Cache-Control"),
        example={"active": False},
    )
    active["content"][SIGNED] = {"schema": described(TEXT, "The same, signed (RFC 9701).")}
    return {
        "post": {
            "operationId": "introspectToken",
            "tags": ["Protected APIs"],
            "summary": "Ask whether a token is active",
            "description": "For registered protected APIs (RFC 7662).",
            "security": [{}, {"basic": []}],
            "requestBody": form_body(
                {
                    **CREDENTIALS,
                    "token": described(TEXT, "The access token."),
                    "token_type_hint": described(TEXT, "Is ignored."),
                },
                required=["token"],
            ),
            "responses": {
                "200": active,
                **own_errors(PROTECTED_API),
                "406": response(
                    "`Accept` allows neither JSON nor the signed answer",
                    reference("schemas", "Error"),
                    headers=header_refs("correlationId", "Cache-Control"),
                ),
            },
        }
    }


def revocation_path() -> Part:
    """RFC 7009."""
    return {
        "post": {
            "operationId": "revokeToken",
            "tags": ["Clients"],
            "summary": "End a token before it expires",
            "description": "For the client that owns it (RFC 7009). Safe to repeat.",
            "security": [{}, {"basic": []}],
            "requestBody": form_body(
                {**CREDENTIALS, **_ASSERTION, "token": described(TEXT, "The access token.")},
                required=["token"],
            ),
            "responses": {
                "200": {
                    "description": "The token is not active any more. The body is empty.",
                    "headers": header_refs("correlationId", "Cache-Control"),
                },
                **own_errors(ERP_SYSTEM),
            },
        }
    }


def form_body(properties: Part, *, required: list[str], example: Part | None = None) -> Part:
    """A form as the body of a request."""
    content: Part = {"schema": {"type": "object", "required": required, "properties": properties}}
    if example:
        content["example"] = example
    return {"required": True, "content": {_FORM: content}}


def _on_behalf_of() -> Part:
    tin, rob = settings.TIN_PATTERN, settings.ROB_PATTERN
    return {
        "name": "onbehalfof",
        "in": "header",
        "description": "Only to act for another taxpayer: TIN or TIN:ROB, once.",
        "schema": {"type": "string", "pattern": f"^(?:{tin})(?::(?:{rob}))?$"},
        "example": "C1234567890",
    }


def _dpop() -> Part:
    return {
        "name": "DPoP",
        "in": "header",
        "description": "A proof, only for clients whose tokens are bound to a key (RFC 9449).",
        "schema": TEXT,
    }
