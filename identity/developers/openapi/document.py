"""The OpenAPI 3.1 description of every public address: `openapi.yaml`, filled in by `made.py`.

Written by hand, because no serializers make these answers; tests compare it with real ones.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import is_valid_path

from identity.developers.openapi.made import MADE
from identity.developers.pages import static_answer
from tokens.http import read_only

_FILE = Path(__file__).parent / "openapi.yaml"
_MADE = "x-made"


@cache
def document(auth_url: str) -> dict[str, Any]:
    """The description of the service at this address."""
    written = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    del written["x-shared"]  # each part is where it is named
    sandbox = written.pop("x-sandbox")
    if is_valid_path("/sandbox"):
        written["tags"] += sandbox["tags"]
        written["paths"] |= sandbox["paths"]
        written["components"]["schemas"] |= sandbox["schemas"]
    filled: dict[str, Any] = _filled(written, auth_url)
    return filled


def _filled(part: Any, auth_url: str) -> Any:
    if isinstance(part, list):
        return [_filled(entry, auth_url) for entry in part]
    if not isinstance(part, dict):
        return part
    rest = {name: _filled(member, auth_url) for name, member in part.items() if name != _MADE}
    if _MADE not in part:
        return rest
    made = MADE[part[_MADE]](auth_url)
    return {**rest, **made} if rest else made


# Tools in a browser may read it from another site.
_HEADERS = {"Access-Control-Allow-Origin": "*"}


@read_only
def as_json(request: HttpRequest) -> HttpResponse:
    """The description in JSON."""
    return static_answer(request, "application/json", _json(settings.AUTH_URL), _HEADERS)


@cache
def _json(auth_url: str) -> bytes:
    return json.dumps(document(auth_url), ensure_ascii=False, indent=1).encode()
