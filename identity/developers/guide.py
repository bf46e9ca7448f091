"""Documents as pages: the guides of docs/, and the OpenAPI description, without scripts."""

import itertools
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext, gettext_noop as _
from markdown_it import MarkdownIt
from markdown_it.token import Token

from identity.developers.openapi.document import document
from identity.developers.pages import ENGLISH, Page
from identity.developers.snippets.catalogue import AUTH_URL_OF_THE_FILES

_EXAMPLE, _STAFF_EXAMPLE = "https://id.example.org", "https://staff.id.example.org"
# Which test holds a sentence is for readers of the code.
_TESTS = re.compile(r"\s\((?:`test_\w+`(?:, )?)+\)|: `test_\w+`(?:, `test_\w+`)*")
_PACKAGE = "](../packages/einvoicing_tokens/"  # a link from a document to a file of the package


def guide(request: HttpRequest, language: str, file: str) -> HttpResponse:
    """A document of docs/, or its translation."""
    return _GUIDES[file](request, language=language)


def as_html(text: str, original: str = "") -> SafeString:
    """A document of ours; HTML in it stays text. Each heading has the id that GitHub gives it.

    Of a translation that of the `original`, so that a link leads there in both languages.
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    anchors = _anchors(markdown.parse(original) if original else tokens)
    for token in tokens:
        if token.type == "heading_open":
            token.attrSet("id", next(anchors))
        elif token.type == "table_open":
            token.attrSet("tabindex", "0")
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    html = html.replace("<pre>", '<pre tabindex="0">')  # it scrolls, also by keyboard
    return SafeString(html)


def _anchors(tokens: list[Token]) -> Iterator[str]:
    for token, following in itertools.pairwise(tokens):
        if token.type == "heading_open":
            heading = following.content.lower()
            yield re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def _document(file: str, title: str) -> Mapping[str, Any]:
    docs, language = settings.BASE_DIR / "docs", get_language() or ENGLISH
    text = original = (docs / file).read_text(encoding="utf-8")
    if language != ENGLISH:
        text = (docs / language / file).read_text(encoding="utf-8").replace("](../", "](")
    text = _TESTS.sub("", text)
    for address in (AUTH_URL_OF_THE_FILES, _EXAMPLE):
        text = text.replace(address, settings.AUTH_URL)
    # A node that serves logins only does not know the address of the staff.
    text = text.replace(_STAFF_EXAMPLE, getattr(settings, "STAFF_URL", _STAFF_EXAMPLE))
    base = urlsplit(settings.AUTH_URL).path
    text = text.replace(_PACKAGE, f"]({base}/packages/")
    for name, page in _GUIDES.items():
        text = text.replace(f"]({name}", f"]({base}/{page.address}")
    return {"title": gettext(title), "guide": as_html(text, original), "written_in": language}


_TEMPLATE = "developers/guide.html"
_GUIDES = {
    file: Page(address, _TEMPLATE, partial(_document, file, title))
    for file, address, title in (
        ("erp-developers.md", "guide", _("Guide")),
        ("api-teams.md", "api-teams", _("API teams")),
        ("management-api.md", "management-api", _("Management API")),
        ("webhooks.md", "webhooks", _("Webhooks")),
        ("permission-requests.md", "permission-requests", _("Permission requests")),
    )
}


Part = Mapping[str, Any]


def _context() -> Part:
    """Every address; what it takes and answers. It is written in English."""
    text = "\n".join(_lines(document(settings.AUTH_URL)))
    return {"title": gettext("Reference"), "guide": as_html(text), "written_in": ENGLISH}


reference = Page("reference", _TEMPLATE, _context)


def _lines(described: Part) -> Iterator[str]:
    def whole(part: Part) -> Part:
        while "$ref" in part:
            found: Any = described
            for name in part["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            part = found
        return part

    yield f"# {described['info']['title']}\n\n{described['info']['description']}\n"
    for path, methods in described["paths"].items():
        shared = methods.get("parameters", [])
        for method in (name for name in methods if name in ("get", "post", "delete")):
            operation = methods[method]
            yield f"## {method.upper()} {path}\n\n{operation['summary']}\n"
            yield f"{operation.get('description', '')}\n"
            given = [whole(one) for one in (*shared, *operation.get("parameters", []))]
            rows = [(one["name"], one["in"], one.get("description", "")) for one in given]
            body = operation.get("requestBody", {}).get("content", {})
            for kind, content in body.items():
                schema = whole(content["schema"])
                fields = schema.get("properties", {}).items()
                needed = schema.get("required", ())
                rows += [
                    (name, f"{kind}{', needed' if name in needed else ''}", _said(whole(field)))
                    for name, field in fields
                ]
            yield from _table(("name", "where", "what"), rows)
            answers = operation["responses"].items()
            rows = [(status, "", whole(one).get("description", "")) for status, one in answers]
            yield from _table(("status", "", "what"), rows)


def _said(field: Part) -> str:
    choices = field.get("enum") or [field["const"]] if "const" in field or "enum" in field else []
    return " ".join([field.get("description", ""), ", ".join(f"`{one}`" for one in choices)])


def _table(head: tuple[str, str, str], rows: list[tuple[str, str, str]]) -> Iterator[str]:
    if rows:
        yield f"\n| {' | '.join(head)} |\n| --- | --- | --- |"
        for name, where, what in rows:
            yield f"| `{name}` | {where} | {' '.join(what.split()).replace('|', ', ')} |"
        yield ""
