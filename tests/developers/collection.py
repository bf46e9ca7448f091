"""The collection of Postman, as the tests look at it."""

import json
from collections.abc import Iterator
from typing import Any

from django.test import Client

NOT_SENT_BY_ITSELF = {"End a token before it expires", "End the secret that issued this token"}
VARIABLES = {
    *("base_url", "client_id", "client_secret", "onbehalfof", "access_token", "reference"),
    *("token_to_end", "api_client_id", "api_client_secret"),
}
SECRETS = {"client_secret", "api_client_secret"}


def collection() -> dict[str, Any]:
    """As it is downloaded."""
    answer = Client().get("/postman.json")
    assert answer["Content-Type"] == "application/json"
    downloaded: dict[str, Any] = json.loads(answer.content)
    return downloaded


def items(postman: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each request, with the folder that it is in."""
    for folder in postman["item"]:
        yield from ((folder["name"], item) for item in folder["item"])


def named(postman: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (item for _folder, item in items(postman) if item["name"] == name)
    return found


def sent(pairs: list[dict[str, Any]]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in pairs if not pair.get("disabled")}
