"""A whole answer in a form that tests compare."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def body_of(response: HttpResponse) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(response.content)
    return body


def headers_of(response: HttpResponse) -> dict[str, str]:
    """All headers but the length, which says nothing that the body does not."""
    return {name: value for name, value in response.items() if name != "Content-Length"}


def assert_error(body: Any, error: str, says: str, reference: str = "") -> None:
    """The body of a refusal: its error, and a description in the characters of RFC 6749."""
    assert set(body) == {"error", "error_description"}
    assert body["error"] == error
    assert re.fullmatch(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+", body["error_description"])
    assert says in body["error_description"]
    if reference:
        assert body["error_description"].endswith(f" Reference: {reference}")


def assert_shape(
    headers: Mapping[str, str], body: Any, error: str, says: str, reference: str = UUID7
) -> None:
    """What every refusal has, of a node or the proxy (contract 1); names in lower case."""
    assert "www-authenticate" not in headers
    assert headers["content-type"] == "application/json"
    assert headers["cache-control"] == "no-store"
    assert headers["pragma"] == "no-cache"
    assert re.fullmatch(reference, headers["correlationid"])
    assert_error(body, error, says, headers["correlationid"])
