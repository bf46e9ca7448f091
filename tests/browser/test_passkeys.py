"""Signing in with a passkey, in a real browser, which obeys the content security policy."""

from tests.browser import Browser
from tests.support.accounts import PASSWORD


def test_a_first_officer_sets_up_a_passkey_and_signs_in_with_it(
    staff_pages: str, browser: Browser
) -> None:
    page = browser.page
    browser.add_passkey_device()
    page.goto(f"{staff_pages}/admin/")
    page.fill("[name=login]", "boss")
    page.fill("[name=password]", PASSWORD)
    page.click("text=Sign in >> nth=1")
    page.wait_for_url("**/signin/second/")
    page.click("text=Add a key")
    page.click("#mfa_webauthn_add")
    page.wait_for_url("**/recovery-codes/")
    codes = page.input_value("#recovery_codes").split()
    assert len(codes) == 10
    page.check("#codes_saved")
    page.click("text=Go to the staff pages")
    page.wait_for_url("**/admin/")

    page.goto(f"{staff_pages}/signin/out/")
    page.click("main button[type=submit]")
    page.wait_for_url("**/signin/")
    page.click("#passkey_login")
    page.wait_for_url("**/admin/")

    # The passkey as the second step of a password, and a recovery code instead of it.
    for second_step in ("passkey", "code"):
        page.goto(f"{staff_pages}/signin/out/")
        page.click("main button[type=submit]")
        page.fill("[name=login]", "boss")
        page.fill("[name=password]", PASSWORD)
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/authenticate/")
        if second_step == "passkey":
            page.click("#mfa_webauthn_authenticate")
        else:
            page.fill("[name=code]", codes[0])
            page.press("[name=code]", "Enter")
        page.wait_for_url("**/admin/")


def test_a_passkey_that_cannot_be_used_is_explained(staff_pages: str, browser: Browser) -> None:
    page = browser.page
    page.goto(staff_pages.replace("localhost", "127.0.0.1") + "/signin/")
    page.click("#passkey_login")
    page.wait_for_selector("#passkey-problem:visible")
    assert f"Passkeys work only at {staff_pages}" in page.inner_text("#passkey-problem")


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
