"""What browsers may run on the staff pages: a real Chromium that obeys the headers."""

from tests.browser import Browser
from tests.support.accounts import PASSWORD


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
