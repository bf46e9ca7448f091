"""What browsers may run on the staff's pages: the header, and a real Chromium that obeys it."""

import re

import pytest
from django.test import Client

from tests.browser import Browser, browser, staff_pages
from tests.support.accounts import PASSWORD
from tests.support.staff import staff_client

__all__ = ["browser", "staff_pages"]  # the fixtures

SIGN_IN = "/signin/"


def policy(client: Client, path: str) -> dict[str, list[str]]:
    header = client.get(path).headers["Content-Security-Policy"]
    parts = (directive.split() for directive in header.split(";"))
    return {name: sources for name, *sources in parts}


@pytest.mark.django_db
def test_sign_in_pages_run_our_own_scripts_only(client: Client) -> None:
    directives = policy(client, SIGN_IN)
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
@pytest.mark.parametrize("path", ["/admin/", "/admin/taxpayers/systemuser/", "/signin/second/"])
def test_no_page_runs_inline_scripts(path: str) -> None:
    scripts = policy(staff_client(), path)["script-src"]
    assert "'unsafe-inline'" not in scripts
    assert not {"*", "https:", "http:", "data:", "blob:"} & set(scripts)
    assert ("'unsafe-eval'" in scripts) is path.startswith("/admin")  # Alpine.js


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


def test_chromium_finds_no_violation_in_light_and_dark(staff_pages: str, browser: Browser) -> None:
    page = browser.page
    browser.add_passkey_device()
    page.goto(f"{staff_pages}/signin/")
    page.fill("[name=login]", "boss")
    page.fill("[name=password]", PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url("**/second/")
    page.goto(f"{staff_pages}/signin/second/webauthn/add/")
    page.click("#mfa_webauthn_add")
    page.wait_for_url("**/recovery-codes/")
    page.check("#codes_saved")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for path in (
            *("/signin/second/", "/signin/second/totp/activate/", "/signin/password/"),
            *("/signin/second/webauthn/", "/signin/out/", "/admin/"),
            *("/admin/taxpayers/systemuser/", "/admin/taxpayers/change/"),
        ):
            page.goto(staff_pages + path)
            is_dark = page.evaluate("document.documentElement.classList.contains('dark')")
            assert is_dark is (theme == "dark"), path
    # The fixture asserts that there were no complaints. And the policy is in force:
    browser.complaints.clear()
    page.evaluate(
        "document.body.append(Object.assign("
        "document.createElement('script'), {textContent: 'window.injected = true'}))"
    )
    assert page.evaluate("window.injected") is None
    assert any("Content Security Policy" in complaint for complaint in browser.complaints)
    browser.complaints.clear()
