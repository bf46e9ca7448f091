"""`/packages/`: `packages/dist/` as `pip install --find-links` reads it, and the examples."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from identity.developers.pages import NO_SNIFFING, Page, static_answer
from identity.developers.snippets.catalogue import AUTH_URL_OF_THE_FILES
from tokens.http import read_only

_PACKAGES = Path(settings.BASE_DIR) / "packages"
_BUILT, _OURS = _PACKAGES / "dist", _PACKAGES / "einvoicing_tokens"
_CHANGES = "CHANGELOG.md"


@read_only
def download(request: HttpRequest, name: str) -> HttpResponse:
    """`GET /packages/<name>`: a file of the list, an example or the changes. Raises Http404."""
    content_type, body = _file(name, settings.AUTH_URL)
    return static_answer(request, content_type, body, NO_SNIFFING)


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
    files = (_OURS / "examples").rglob("*")
    shown = (file for file in files if file.is_file() and file.suffix != ".pyc")
    return {file.relative_to(_OURS).as_posix(): file for file in shown}


@cache
def _file(name: str, auth_url: str) -> tuple[str, bytes]:
    if found := {_CHANGES: _OURS / _CHANGES, **_examples()}.get(name):
        text = found.read_text(encoding="utf-8").replace(AUTH_URL_OF_THE_FILES, auth_url)
        return "text/plain; charset=utf-8", text.encode()
    for file in _built():
        if file.name == name:
            return "application/octet-stream", file.read_bytes()
    raise Http404


packages = Page("packages/", "developers/packages.html", _context)
