"""A whole answer in a form that tests compare."""

import json
from typing import Any

from django.http import HttpResponse

UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"


def body_of(response: HttpResponse) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(response.content)
    return body


def headers_of(response: HttpResponse) -> dict[str, str]:
    """All headers but the length, which says nothing that the body does not."""
    return {name: value for name, value in response.items() if name != "Content-Length"}
