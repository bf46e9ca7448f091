"""One page in each language, at its own address and at a plain one by `Accept-Language`; files.

A page is the same for everybody, so each process makes it once. It needs no script and no cookie.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template import Context, Engine
from django.utils import translation
from django.utils.cache import get_conditional_response
from django.utils.decorators import method_decorator
from django.utils.translation.trans_real import parse_accept_lang_header

from identity.developers.snippets.catalogue import SNIPPETS, source_of
from tokens.http import read_only

ENGLISH, MALAY = "en", "ms"
LANGUAGES = {ENGLISH: "English", MALAY: "Bahasa Melayu"}

_HEADERS = {
    # Nothing but our own style sheet is loaded, and no other site can frame the page.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


@dataclass(frozen=True)
class Page:
    """What is shown at `address` (below AUTH_URL, without the first slash).

    `context` is asked for each language, while that language is active.
    """

    address: str
    template: str
    context: Callable[[], Mapping[str, Any]]

    @method_decorator(read_only)  # type: ignore[arg-type]  # which is for pages, not for streams
    def __call__(self, request: HttpRequest, language: str) -> HttpResponse:
        """The page in this language; empty: in the one that the browser prefers."""
        chosen = language or preferred(request.headers.get("Accept-Language", ""))
        body = _rendered(self, chosen, is_chosen=bool(language), base=settings.AUTH_URL)
        headers = _HEADERS | {"Content-Language": chosen}
        if not language:
            headers["Vary"] = "Accept-Language"
        return static_answer(request, "text/html; charset=utf-8", body, headers)


def preferred(accepted: str) -> str:
    """The best of our languages for a header `Accept-Language` (RFC 9110 section 12.5.4)."""
    for tag, quality in parse_accept_lang_header(accepted[:500]):
        if quality and (language := tag.partition("-")[0]) in LANGUAGES:
            return language
    return ENGLISH


@cache
def _rendered(page: Page, language: str, *, is_chosen: bool, base: str) -> bytes:
    with translation.override(language):
        context = {
            "base": urlsplit(base).path,  # where AUTH_URL is below the root of its host
            "auth_url": base,
            "environment": settings.ENVIRONMENT,
            "language": language,
            "languages": LANGUAGES,
            "address": page.address,
            # Links lead on in the language that was chosen, if one was.
            "prefix": f"{language}/" if is_chosen else "",
            "style": STYLE,
            **page.context(),
        }
        text = _engine().get_template(page.template).render(Context(context))
    return text.encode()


@cache
def _engine() -> Engine:
    """Only templates: a process that serves logins has no other use for them."""
    return Engine(
        dirs=[str(settings.BASE_DIR / "templates")], libraries={"i18n": "django.templatetags.i18n"}
    )


STYLE, _CHECK = "style.css", "clientcheck.py"

_FOLDER = Path(__file__).parent
NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}


@read_only
def download(request: HttpRequest, name: str) -> HttpResponse:
    """`GET /developers/<name>`, and `/clientcheck.py`. Raises Http404 for any other name."""
    content_type, body = _file(name, settings.AUTH_URL)
    stored = {"Content-Disposition": f'attachment; filename="{name}"'} if name == _CHECK else {}
    return static_answer(request, content_type, body, NO_SNIFFING | stored)


def static_answer(
    request: HttpRequest, content_type: str, body: bytes, headers: Mapping[str, str]
) -> HttpResponse:
    """What is the same for everybody: caches may store it for an hour; 304 if it is there."""
    etag = _etag(body)
    all_headers = {"Cache-Control": "public, max-age=3600", **headers, "ETag": etag}
    response = HttpResponse(body, content_type=content_type, headers=all_headers)
    return get_conditional_response(request, etag=etag, response=response) or response


@lru_cache(maxsize=64)
def _etag(body: bytes) -> str:
    """A strong validator: another one for any other content (RFC 9110 section 8.8.3)."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


@cache
def _file(name: str, auth_url: str) -> tuple[str, bytes]:
    if name == STYLE:
        return "text/css; charset=utf-8", (_FOLDER / STYLE).read_bytes()
    if name == _CHECK:
        check = settings.BASE_DIR / "clientcheck" / _CHECK
        return "text/x-python; charset=utf-8", check.read_bytes()
    for snippet in SNIPPETS:
        if snippet.file == name:
            return "text/plain; charset=utf-8", source_of(snippet, auth_url).encode()
    raise Http404
