"""`GET /guide`: docs/erp-developers.md as a page, for those who have no source code."""

import itertools
import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from markdown_it import MarkdownIt

from identity.developers.pages import Page, show
from identity.developers.snippets.catalogue import AUTH_URL_OF_THE_FILES

_FILE = "docs/erp-developers.md"


def guide(request: HttpRequest, language: str) -> HttpResponse:
    """The guide; it is written in English."""
    return show(request, _GUIDE, language)


def as_html(text: str) -> SafeString:
    """A document of ours; HTML in it stays text. Each heading has the id that GitHub gives it."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    for token, following in itertools.pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _anchor(following.content))
        elif token.type == "table_open":
            token.attrSet("tabindex", "0")
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    html = html.replace("<pre>", '<pre tabindex="0">')  # it scrolls, also by keyboard
    return SafeString(html)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _context() -> Mapping[str, Any]:
    text = (settings.BASE_DIR / _FILE).read_text(encoding="utf-8")
    text = text.replace(AUTH_URL_OF_THE_FILES, settings.AUTH_URL)
    return {"title": gettext("Guide"), "guide": as_html(text)}


_GUIDE = Page("guide", "developers/guide.html", _context)
