"""What the collections of Bruno and Postman contain: requests made from the OpenAPI description.

Names in double braces are variables, which both programs write that way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from django.urls import is_valid_path

from identity.developers.openapi.document import document
from identity.developers.openapi.parts import JSON, Part
from identity.sandbox.catalogue import CLIENTS, TOKEN, SandboxClient
from taxpayers.sandbox.clients import SandboxName
from tokens.refusals.table import REFUSALS, ProtocolReason

NAME = "Access tokens for e-invoicing"
DESCRIPTION = (
    "Set client_id and client_secret, and send *Log in*: it stores the token, with which the other"
    " requests call. What ends a token or a secret takes token_to_end, which is empty: a run of the"
    " whole collection ends nothing. client_id and client_secret of a protected API go into"
    " api_client_id and api_client_secret."
)
# The variables, each with its value to begin with; `base_url` comes on top.
VARIABLES = {
    "client_id": "",
    "onbehalfof": "C1234567890",
    "access_token": "",
    "reference": "",
    "token_to_end": "",
    "api_client_id": "",
}
SECRETS = ("client_secret", "api_client_secret")

_LOGIN = "/connect/token"
_NO_REQUESTS = "Files"
_OF_PROTECTED_APIS = "Protected APIs"
_ENDS_SOMETHING = ("/connect/revocation", "delete")


@dataclass(frozen=True, slots=True)
class Field:
    """A header, or a parameter of the form, the query string or the path."""

    name: str
    value: str
    description: str = ""
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class Example:
    """An answer that the description has."""

    name: str
    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `expected`: the statuses of which its answer must have one; none: any.

    `bearer`: the variable with the token to send. `reason`: for which it must be refused, or
    nothing. `stores_token`: a token becomes the variable `access_token`, and the reference of the
    login becomes `reference`.
    """

    id: str
    name: str
    folder: str
    description: str
    method: str
    path: str
    bearer: str = ""
    headers: Sequence[Field] = ()
    query: Sequence[Field] = ()
    parts_of_path: Sequence[Field] = ()
    form: Sequence[Field] = ()
    examples: Sequence[Example] = field(default=(), repr=False)
    stores_token: bool = False
    expected: Sequence[int] = ()
    reason: str = ""


def requests_of(auth_url: str) -> list[Request]:
    """All of them, in the order of the description; those of the sandbox where it is served."""
    described = document(auth_url)
    found = [
        _request(path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if operation["tags"] != [_NO_REQUESTS]
    ]
    login = next(request for request in found if request.path == _LOGIN)
    found.append(_on_behalf_of(login))  # last: the others of a run need a token without it
    if is_valid_path("/sandbox"):
        found += [_of_sandbox(login, client) for client in CLIENTS]
    return found


def folders_of(requests: Sequence[Request]) -> dict[str, list[Request]]:
    """The requests by their folders."""
    folders: dict[str, list[Request]] = {}
    for request in requests:
        folders.setdefault(request.folder, []).append(request)
    return folders


def _request(path: str, method: str, operation: Part) -> Request:
    (tag,) = operation["tags"]
    ends = path in _ENDS_SOMETHING or method in _ENDS_SOMETHING
    parameters: list[Part] = operation.get("parameters", [])
    token = "token_to_end" if ends else "access_token"
    return Request(
        id=operation["operationId"],
        name=operation["summary"],
        folder=tag,
        description=operation.get("description", ""),
        method=method.upper(),
        path=path,
        bearer=f"{{{{{token}}}}}" if {"bearer": []} in operation["security"] else "",
        headers=[_parameter(part) for part in parameters if part["in"] == "header"],
        query=[_parameter(part) for part in parameters if part["in"] == "query"],
        parts_of_path=[_part_of_path(part) for part in parameters if part["in"] == "path"],
        form=list(_form(operation, tag, token)),
        examples=list(_examples(operation)),
        stores_token=path == _LOGIN,
    )


def _parameter(part: Part) -> Field:
    """One that may be left out, and is."""
    return Field(part["name"], str(part.get("example", "")), part.get("description", ""), False)


def _part_of_path(part: Part) -> Field:
    is_variable = part["name"] in VARIABLES
    value = f"{{{{{part['name']}}}}}" if is_variable else str(part["example"])
    return Field(part["name"], value, part.get("description", ""))


def _form(operation: Part, tag: str, token: str) -> Iterator[Field]:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema, example = content["schema"], content.get("example", {})
        variables = {name: f"{{{{{name}}}}}" for name in ("client_id", "client_secret")}
        if tag == _OF_PROTECTED_APIS:
            variables = {name: f"{{{{api_{name}}}}}" for name in variables}
        values = {**variables, "token": f"{{{{{token}}}}}"}
        if operation["operationId"] == "resetSandboxCounter":
            values |= example
        for name, part in schema["properties"].items():
            known = values.get(name) or part.get("const", "")
            is_sent = name in values or name in schema["required"]
            yield Field(name, str(known), part.get("description", ""), is_sent)


def _examples(operation: Part) -> Iterator[Example]:
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get(JSON, {})
        if "example" in content:
            yield Example(response["description"], int(status), content["example"])
        for name, example in content.get("examples", {}).items():
            yield Example(name, int(status), example["value"])


def _on_behalf_of(login: Request) -> Request:
    """The same login for another taxpayer."""
    return replace(
        login,
        id=f"{login.id}OnBehalfOf",
        name="Log in for another taxpayer",
        description="As an intermediary: the variable onbehalfof is the taxpayer, TIN or TIN:ROB.",
        headers=[_sent(header, "{{onbehalfof}}") for header in login.headers],
        examples=(),
    )


def _sent(header: Field, value: str) -> Field:
    """The header onbehalfof with this value; any other as it is."""
    if header.name != "onbehalfof" or not value:
        return header
    return replace(header, value=value, is_sent=True)


def _of_sandbox(login: Request, client: SandboxClient) -> Request:
    """The login of this client, whose secret is public."""
    public = {
        "client_id": client.credentials.client_id,
        "client_secret": client.credentials.client_secret,
    }
    gets_token = client.gets == TOKEN
    expected = [HTTPStatus.OK if gets_token else REFUSALS[client.gets].status]
    if client.name == SandboxName.ONE_LOGIN_A_MINUTE:
        expected.append(REFUSALS[ProtocolReason.RATE_LIMITED].status)
    return replace(
        login,
        id=str(client.name),
        name=str(client.name),
        folder="Sandbox",
        description=str(client.does),
        headers=[_sent(header, client.on_behalf_of) for header in login.headers],
        form=[replace(each, value=public.get(each.name, each.value)) for each in login.form],
        examples=(),
        stores_token=gets_token,
        expected=[int(status) for status in expected],
        reason="" if gets_token else str(client.gets),
    )
