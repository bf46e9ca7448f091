"""What browsers may run on the staff pages: the headers."""

import re

import pytest
from django.test import Client

from tests.support.staff import staff_client

SIGN_IN = "/signin/"


def policy(client: Client, path: str) -> dict[str, list[str]]:
    header = client.get(path).headers["Content-Security-Policy"]
    parts = (directive.split() for directive in header.split(";"))
    return {name: sources for name, *sources in parts}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [SIGN_IN, "/admin/", "/admin/taxpayers/systemuser/", "/admin/search/", "/signin/second/"],
)
def test_every_page_runs_and_styles_by_our_own_files_only(path: str) -> None:
    directives = policy(Client() if path == SIGN_IN else staff_client(), path)
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
        assert all(re.fullmatch(r"'nonce-[\w+/]{22}=='", source) for source in sources[1:])


@pytest.mark.django_db
def test_each_response_has_a_new_nonce(client: Client) -> None:
    first, second = (client.get(SIGN_IN).headers["Content-Security-Policy"] for _ in range(2))
    assert first != second


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/", SIGN_IN, "/no-such-page"])
def test_pages_have_security_headers(path: str) -> None:
    headers = staff_client().get(path).headers
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "camera=()" in headers["Permissions-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/admin/", "/signin/second/", "/signin/password/"])
def test_staff_pages_are_not_cached(path: str) -> None:
    assert "no-store" in staff_client().get(path).headers["Cache-Control"]
