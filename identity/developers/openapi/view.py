"""`GET /openapi.json` and `/openapi.yaml`: made once in each process."""

import json
from functools import cache

import yaml
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from identity.developers.downloads import static_answer
from identity.developers.openapi.document import document
from tokens.http import read_only

# Tools in a browser may read it from another site.
_HEADERS = {"Access-Control-Allow-Origin": "*"}


@read_only
def as_json(request: HttpRequest) -> HttpResponse:
    """The description in JSON."""
    return static_answer(request, "application/json", _json(settings.AUTH_URL), _HEADERS)


@read_only
def as_yaml(request: HttpRequest) -> HttpResponse:
    """The same in YAML (RFC 9512)."""
    return static_answer(request, "application/yaml", _yaml(settings.AUTH_URL), _HEADERS)


@cache
def _json(auth_url: str) -> bytes:
    return json.dumps(document(auth_url), ensure_ascii=False, indent=1).encode()


@cache
def _yaml(auth_url: str) -> bytes:
    plain = json.loads(_json(auth_url))  # without enumerations, and without shared parts
    return yaml.safe_dump(plain, allow_unicode=True, sort_keys=False, width=100).encode()
