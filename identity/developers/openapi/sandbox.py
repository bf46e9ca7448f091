"""The sandbox in the OpenAPI description, where it is served: in the test environment."""

from identity.developers.openapi.errors import REF_ERROR, header_refs, read_only, slow
from identity.developers.openapi.login import CREDENTIALS, form_body
from identity.developers.openapi.parts import (
    TEXT,
    URI,
    WHOLE_NUMBER,
    Part,
    described,
    list_of,
    or_null,
    record,
    reference,
    response,
)
from identity.sandbox.catalogue import CLIENTS
from identity.sandbox.listing import client_as_json, sandbox_as_json
from identity.sandbox.reset import NO_CLIENT, UNAVAILABLE
from taxpayers.sandbox.clients import CREDENTIALS as OF_SANDBOX
from taxpayers.sandbox.clients import SandboxName
from tokens.http import error_body

TAGS = ({"name": "Sandbox", "description": "Clients that always behave in one way."},)
SCHEMAS: Part = {
    "Sandbox": record(
        token_endpoint=URI,
        reset_endpoint=URI,
        limit=TEXT,
        clients=list_of(
            record(
                name=TEXT,
                gets=described(TEXT, "`token`, or the reason for which it is refused."),
                does=TEXT,
                client_id=TEXT,
                client_secret=described(TEXT, "Public: it opens nothing."),
                onbehalfof=described(or_null(TEXT), "The header to send; null: none."),
                help=or_null(URI),
            )
        ),
        requests=list_of(record(reason=TEXT, send=TEXT, help=URI)),
    ),
    "Reset": record(client_id=TEXT, name=TEXT, logins=WHOLE_NUMBER),
}


def sandbox_paths() -> Part:
    """The lists, and the reset of a counter."""
    return {
        "/sandbox": {
            "get": {
                **_about("showSandbox", "The clients of the sandbox, as a page"),
                "responses": {
                    "200": response("The page", TEXT, media_type="text/html"),
                    **read_only(""),
                },
            }
        },
        "/sandbox.json": {
            "get": {
                **_about("getSandbox", "The clients of the sandbox"),
                "responses": {
                    "200": response(
                        "The list", reference("schemas", "Sandbox"), example=_short_list()
                    ),
                    **read_only(""),
                },
            }
        },
        "/sandbox/reset": {
            "post": {
                **_about("resetSandboxCounter", "Reset the counter of a client of the sandbox"),
                "security": [{}, {"basic": []}],
                "requestBody": form_body(CREDENTIALS, required=[], example=_reset_form()),
                "responses": _reset_responses(),
            }
        },
    }


def _about(name: str, summary: str) -> Part:
    return {"operationId": name, "tags": ["Sandbox"], "summary": summary, "security": []}


def _short_list() -> Part:
    """With one client and one request, as an example."""
    whole = sandbox_as_json()
    return whole | {"clients": [client_as_json(CLIENTS[0])], "requests": whole["requests"][:1]}


def _reset_form() -> dict[str, str]:
    public = OF_SANDBOX[SandboxName.ONE_LOGIN_A_MINUTE]
    return {"client_id": public.client_id, "client_secret": public.client_secret}


def _reset_responses() -> dict[str, Part]:
    public = OF_SANDBOX[SandboxName.ONE_LOGIN_A_MINUTE]
    done = {"client_id": public.client_id, "name": SandboxName.ONE_LOGIN_A_MINUTE, "logins": 0}
    return {
        "200": response(
            "It is reset",
            reference("schemas", "Reset"),
            headers=header_refs("Cache-Control"),
            example=done,
        ),
        "400": response(
            "It is no client of the sandbox",
            REF_ERROR,
            example=error_body("invalid_client", NO_CLIENT),
        ),
        "405": response(
            "Method Not Allowed",
            REF_ERROR,
            headers=header_refs("Allow"),
            example=error_body("invalid_request", "This address takes POST only."),
        ),
        "408": slow(),
        "503": response(
            "Service Unavailable",
            REF_ERROR,
            headers=header_refs("Retry-After"),
            example=error_body("temporarily_unavailable", UNAVAILABLE),
        ),
    }
