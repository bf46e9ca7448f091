"""`/packages/`: the wheel and the sdist of `einvoicing_tokens`, for API teams, and its examples.

A release builds both into `packages/dist/`. `pip install --find-links` reads the list and checks
each digest.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from identity.developers.pages import Page, show, static_answer
from tokens.http import read_only

_PACKAGES = Path(settings.BASE_DIR) / "packages"
_BUILT, _EXAMPLES = _PACKAGES / "dist", _PACKAGES / "einvoicing_tokens" / "examples"
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}


def packages(request: HttpRequest, language: str) -> HttpResponse:
    """The files, each with its version and digest."""
    return show(request, _LIST, language)


def download(request: HttpRequest, name: str) -> HttpResponse:
    """`GET /packages/<name>`: a file of the list, or `examples/…`. Raises Http404."""
    content_type, body = _file(name)

    @read_only
    def view(request: HttpRequest) -> HttpResponse:
        return static_answer(request, content_type, body, _NO_SNIFFING)

    return view(request)


def _context() -> Mapping[str, Any]:
    files = [
        {"name": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for file in _built()
    ]
    return {"title": gettext("Packages"), "files": files, "examples": sorted(_examples())}


def _built() -> list[Path]:
    return sorted(_BUILT.glob("einvoicing_tokens-*"))


def _examples() -> dict[str, Path]:
    """By their paths below `/packages/`."""
    files = (file for file in _EXAMPLES.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {f"examples/{file.relative_to(_EXAMPLES).as_posix()}": file for file in files}


@cache
def _file(name: str) -> tuple[str, bytes]:
    if example := _examples().get(name):
        return "text/plain; charset=utf-8", example.read_bytes()
    for file in _built():
        if file.name == name:
            return "application/octet-stream", file.read_bytes()
    raise Http404


_LIST = Page("packages/", "developers/packages.html", _context)
