"""Files below `/developers/`: the style sheet of the pages, and programs that fetch a token."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response

from identity.developers.snippets.catalogue import SNIPPETS, source_of
from tokens.http import read_only

STYLE = "style.css"

_FOLDER = Path(__file__).parent
_HEADERS = {"Cache-Control": "public, max-age=3600"}
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}


def download(request: HttpRequest, name: str) -> HttpResponse:
    """`GET /developers/<name>`. Raises Http404 for any other name."""
    content_type, body = _file(name, settings.AUTH_URL)

    @read_only
    def view(request: HttpRequest) -> HttpResponse:
        return static_answer(request, content_type, body, _NO_SNIFFING)

    return view(request)


def static_answer(
    request: HttpRequest, content_type: str, body: bytes, headers: Mapping[str, str]
) -> HttpResponse:
    """What is the same for everybody: caches may store it for an hour; 304 if it is there."""
    etag = etag_of(body)
    all_headers = {**_HEADERS, **headers, "ETag": etag}
    response = HttpResponse(body, content_type=content_type, headers=all_headers)
    return get_conditional_response(request, etag=etag, response=response) or response


def etag_of(body: bytes) -> str:
    """A strong validator: another one for any other content (RFC 9110 section 8.8.3)."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@cache
def _file(name: str, auth_url: str) -> tuple[str, bytes]:
    if name == STYLE:
        return "text/css; charset=utf-8", (_FOLDER / STYLE).read_bytes()
    for snippet in SNIPPETS:
        if snippet.file == name:
            return "text/plain; charset=utf-8", source_of(snippet, auth_url).encode()
    raise Http404
