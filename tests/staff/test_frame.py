"""The frame of every staff page: for keyboards and screen readers, and without code in texts."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from identity.staff.error_pages import permission_denied
from taxpayers.models import Taxpayer
from tests.support import make
from tests.support.staff import list_url, text_of

pytestmark = pytest.mark.django_db
SIGN_IN = "/signin/"


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))


@pytest.mark.parametrize("page", ["password_change/done", "taxpayers", "tokens", "staff"])
def test_the_pages_of_the_theme_lead_to_the_first_page(boss: Client, page: str) -> None:
    """They would have no heading and the theme's English."""
    response = boss.get(f"/admin/{page}/")
    assert (response.status_code, response["Location"]) == (302, "/admin/")
    nobody = Client().get(f"/admin/{page}/", follow=True)
    assert nobody.redirect_chain[-1][0].startswith(SIGN_IN)


# Neither code of the browser nor of the theme's Alpine.js and htmx, which are not loaded.
CODE = re.compile(r"x-\w|@|:|hx-|on[a-z]+$|style$")


def assert_has_the_frame(html: str, path: str, environment: str) -> None:
    """`html` is one page; test_hostile_texts.py goes through every page of the staff."""
    assert html.count(f'class="environment environment-{environment}"') == 1, path
    assert f"Environment: </span>{environment.title()}</p>" in html, path
    elements = Elements(html).elements
    for tag, attributes in elements:
        assert not [name for name in attributes if CODE.match(name)], (path, tag, attributes)
        if tag == "script" and "src" not in attributes:
            assert attributes.get("type") == "application/json", (path, attributes)
    buttons = [of for tag, of in elements if tag == "button" and "popovertarget" in of]
    opens = [of for of in buttons if of.get("popovertargetaction") != "hide"]
    popovers = {attributes["id"] for _tag, attributes in elements if "popover" in attributes}
    assert path == SIGN_IN or {"navigation", "user-menu"} <= popovers
    assert {of["popovertarget"] for of in opens} == popovers, path


def test_the_sign_in_has_the_frame(settings: Settings) -> None:
    settings.ENVIRONMENT = "live"
    assert_has_the_frame(Client().get(SIGN_IN).content.decode(), SIGN_IN, "live")


def shown(client: Client, path: str) -> Any:
    return text_of(client.get(path))


def test_only_pages_of_the_staff_have_it_when_they_are_refused() -> None:
    answer = permission_denied(RequestFactory().get("/health"), PermissionDenied())
    assert (answer.status_code, b"navigation" in answer.content) == (403, False)


def test_a_search_without_a_result_names_the_term_and_leads_back(registrar: Client) -> None:
    make.taxpayer()
    for query, sentence in {
        "?q=nobody": "No record matches “nobody”.",
        "?is_active__exact=0": "No record matches the filters.",
        "?q=nobody&is_active__exact=0": "No record matches “nobody” and the filters.",
    }.items():
        text = shown(registrar, list_url(Taxpayer) + query)
        assert sentence in text
        assert "Show the whole list" in text
        assert "yielded" not in text
        assert ("Filters (active)" in text) is ("=0" in query)
    assert "No record matches" not in shown(registrar, list_url(Taxpayer))
    title = "<title>Taxpayers | Token service</title>"
    assert title in registrar.get(list_url(Taxpayer)).content.decode()


PRIVATE = ("/admin/", "/signin/second/", "/signin/password/")


def policy(client: Client, path: str) -> dict[str, list[str]]:
    header = client.get(path).headers["Content-Security-Policy"]
    parts = (directive.split() for directive in header.split(";"))
    return {name: sources for name, *sources in parts}


@pytest.mark.parametrize(
    "path",
    [SIGN_IN, "/admin/", "/admin/taxpayers/systemuser/", "/admin/search/", "/signin/second/"],
)
def test_every_page_runs_and_styles_by_our_own_files_only(path: str, boss: Client) -> None:
    client = Client() if path == SIGN_IN else boss
    directives, again = policy(client, path), policy(client, path)
    scripts = directives.pop("script-src")
    styles = directives.pop("style-src")
    assert directives == {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
    for sources in (scripts, styles):
        assert sources[0] == "'self'"
        assert len(sources) == 1 or sources not in (again["script-src"], again["style-src"])
        assert all(re.fullmatch(r"'nonce-[\w+/]{22}=='", source) for source in sources[1:])


@pytest.mark.parametrize("path", [*PRIVATE, SIGN_IN, "/no-such-page"])
def test_pages_have_security_headers(path: str, boss: Client) -> None:
    headers = boss.get(path).headers
    assert path not in PRIVATE or "no-store" in headers["Cache-Control"]
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "camera=()" in headers["Permissions-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
