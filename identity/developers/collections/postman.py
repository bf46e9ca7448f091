"""The collection in Postman's format (Collection Format v2.1.0), which other programs read too."""

import json
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from identity.developers.collections.requests import (
    DESCRIPTION,
    NAME,
    SECRETS,
    VARIABLES,
    Example,
    Field,
    Request,
    folders_of,
    requests_of,
)

_SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_SECRET = "Enter it as the current value alone: that stays on your machine."
_STORE_TOKEN = (
    'pm.collectionVariables.set("reference", pm.response.headers.get("correlationId"));',
    "if (pm.response.code === 200) {",
    '  pm.collectionVariables.set("access_token", pm.response.json().access_token);',
    "}",
)


def postman_collection(auth_url: str) -> dict[str, Any]:
    """The collection for the service at this address."""
    folders = folders_of(requests_of(auth_url))
    return {
        "info": {"name": NAME, "description": DESCRIPTION, "schema": _SCHEMA},
        "item": [
            {"name": folder, "item": [_item(request) for request in requests]}
            for folder, requests in folders.items()
        ],
        "variable": [
            *(
                {"key": name, "value": value, "type": "string"}
                for name, value in ({"base_url": auth_url} | VARIABLES).items()
            ),
            # The format has no type for secrets.
            *(
                {"key": name, "value": "", "type": "string", "description": _SECRET}
                for name in SECRETS
            ),
        ],
    }


def _item(request: Request) -> dict[str, Any]:
    sent = _request(request)
    item: dict[str, Any] = {"name": request.name, "request": sent}
    if lines := [*_tests(request), *(_STORE_TOKEN if request.stores_token else ())]:
        item["event"] = [
            {"listen": "test", "script": {"type": "text/javascript", "exec": lines}},
        ]
    item["response"] = [_example(example, sent) for example in request.examples]
    return item


def _request(request: Request) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "method": request.method,
        "description": request.description,
        "header": _pairs(request.headers),
        "url": _url(request),
        "auth": {"type": "noauth"},
    }
    if request.bearer:
        sent["auth"] = {
            "type": "bearer",
            "bearer": [{"key": "token", "value": request.bearer, "type": "string"}],
        }
    if request.form:
        sent["body"] = {"mode": "urlencoded", "urlencoded": _pairs(request.form)}
    return sent


def _url(request: Request) -> dict[str, Any]:
    path = request.path.replace("{", ":").replace("}", "")
    queried = "&".join(f"{each.name}={each.value}" for each in request.query if each.is_sent)
    url: dict[str, Any] = {
        "raw": "{{base_url}}" + path + (f"?{queried}" if queried else ""),
        "host": ["{{base_url}}"],
        "path": path.removeprefix("/").split("/"),
    }
    if request.query:
        url["query"] = _pairs(request.query)
    if request.parts_of_path:
        url["variable"] = [
            {"key": each.name, "value": each.value, "description": each.description}
            for each in request.parts_of_path
        ]
    return url


def _pairs(fields: Iterable[Field]) -> list[dict[str, Any]]:
    return [
        {"key": each.name, "value": each.value, "description": each.description}
        | ({} if each.is_sent else {"disabled": True})
        for each in fields
    ]


def _tests(request: Request) -> Sequence[str]:
    """JavaScript that fails unless the answer is the expected one."""
    if not request.expected:
        return ()
    lines = [f"  pm.expect(pm.response.code).to.be.oneOf({json.dumps(list(request.expected))});"]
    if request.reason:
        page = json.dumps(f"/errors/{request.reason}>")
        lines.append(f'  pm.expect(pm.response.headers.get("Link")).to.include({page});')
    return [f"pm.test({json.dumps(request.name)}, () => {{", *lines, "});"]


def _example(example: Example, sent: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": example.name,
        "originalRequest": sent,
        "status": HTTPStatus(example.status).phrase,
        "code": example.status,
        "header": [{"key": "Content-Type", "value": "application/json"}],
        "body": json.dumps(example.body, ensure_ascii=False, indent=1),
    }
