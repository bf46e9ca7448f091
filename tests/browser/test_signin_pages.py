"""The sign-in pages for everybody, light and dark: from the first password to the last key."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.browser import Browser, open_window
from tests.browser.support.accessibility import THEME_RULES, violations
from tests.browser.support.office import Office
from tests.support.accounts import PASSWORD, new_staff, totp_code

NAME = "lina"


@pytest.fixture
def newcomer(office: Office) -> Iterator[Browser]:
    """The window of somebody with an account and no second step yet, where passkeys work."""
    office.service.run(
        lambda: (User.objects.filter(username=NAME).delete(), new_staff("viewer", NAME))
    )
    passkeys_at = office.url.replace("127.0.0.1", "localhost")
    window = open_window(office.chromium, base_url=passkeys_at, locale="en-GB")
    window.page.emulate_media(reduced_motion="reduce")
    window.add_passkey_device()
    yield window
    window.page.context.close()
    assert window.complaints == []


def test_nothing_keeps_people_out_of_a_sign_in_page(newcomer: Browser) -> None:
    page = newcomer.page
    found = [
        *_signing_in(page),
        *_setting_up_an_app(page),
        *_setting_up_a_passkey(page),
        *_with_both_second_steps(page),
        *_signing_in_with_a_code(page),
    ]
    assert found == []


def _signing_in(page: Any) -> list[str]:
    found = [*_at(page, "inactive/"), *_at(page, "")]
    _give_password(page, "wrong")
    page.get_by_text("user name or the password is wrong").wait_for()
    found += _here(page)
    _give_password(page, PASSWORD)
    page.wait_for_url("**/admin/")
    return [*found, *_at(page, "password/"), *_at(page, "second/")]


def _setting_up_an_app(page: Any) -> list[str]:
    found = _at(page, "second/totp/activate/")
    secret = page.locator("#authenticator_secret").input_value()
    _give_code(page, "000000")
    page.get_by_text("Incorrect code").wait_for()
    found += _here(page)
    _give_code(page, totp_code(secret))
    page.wait_for_url("**/recovery-codes/")
    page.locator("#recovery-codes").wait_for()
    return found + _here(page)


def _setting_up_a_passkey(page: Any) -> list[str]:
    found = [*_at(page, "second/webauthn/"), *_at(page, "second/webauthn/add/")]
    page.locator("#mfa_webauthn_add").click()
    page.wait_for_url("**/signin/second/")
    return found


def _with_both_second_steps(page: Any) -> list[str]:
    page.goto("/signin/second/webauthn/")
    links = page.locator("main a[href*='/keys/']").all()
    paths = [link.get_attribute("href").removeprefix("/signin/") for link in links]
    assert len(paths) == 2  # to give the key another name, and to remove it
    paths += ["second/", "second/webauthn/", "second/totp/deactivate/"]
    paths += ["second/recovery-codes/", "second/recovery-codes/generate/"]
    paths += ["again/", "second/reauthenticate/", "out/"]
    return [violation for path in paths for violation in _at(page, path)]


def _signing_in_with_a_code(page: Any) -> list[str]:
    _sign_out(page)
    _give_password(page, PASSWORD)
    page.wait_for_url("**/authenticate/**")
    return _here(page)


def _at(page: Any, path: str) -> list[str]:
    page.goto(f"/signin/{path}")
    assert page.url.endswith(f"/signin/{path}"), "it leads elsewhere"
    return _here(page)


def _here(page: Any) -> list[str]:
    """What axe finds on the page as it stands, dark as well: some are shown only once."""
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    page.locator("html.dark").wait_for(state="attached")
    found += violations(page, THEME_RULES)
    page.emulate_media(color_scheme="light")
    page.locator("html:not(.dark)").wait_for(state="attached")
    return found


def _sign_out(page: Any) -> None:
    page.goto("/signin/out/")
    page.locator("main button[type=submit]").click()
    page.wait_for_url("**/signin/")


def _give_password(page: Any, password: str) -> None:
    page.get_by_label("User name").fill(NAME)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def _give_code(page: Any, code: str) -> None:
    page.locator("[name=code]").fill(code)
    page.locator("[name=code]").press("Enter")


def test_a_newcomer_sets_up_a_passkey_and_signs_in_with_it(newcomer: Browser) -> None:
    page = newcomer.page
    page.goto("/admin/")
    _give_password(page, PASSWORD)
    page.wait_for_url("**/admin/")
    page.goto("/signin/second/")
    page.click("text=Add a key")
    page.click("#mfa_webauthn_add")
    page.wait_for_url("**/recovery-codes/")
    codes = page.inner_text("#recovery-codes").split()
    assert len(codes) == 10
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.on("dialog", lambda dialog: dialog.dismiss())  # it asks, as none was saved
    page.locator("main").get_by_text("Go to the staff pages").click(no_wait_after=True)
    page.click("text=Copy")
    assert page.evaluate("navigator.clipboard.readText()").split() == codes
    page.click("text=Go to the staff pages >> nth=-1")
    page.wait_for_url("**/admin/")
    page.go_back()
    assert codes[0] not in page.content()

    _sign_out(page)
    page.click("#passkey_login")
    page.wait_for_url("**/admin/")

    # The passkey as the second step of a password, and a recovery code instead of it.
    for second_step in ("passkey", "code"):
        _sign_out(page)
        _give_password(page, PASSWORD)
        page.wait_for_url("**/authenticate/**")
        if second_step == "passkey":
            page.click("#mfa_webauthn_authenticate")
        else:
            _give_code(page, codes[0])
        page.wait_for_url("**/admin/")


def test_a_passkey_that_cannot_be_used_is_explained(office: Office, newcomer: Browser) -> None:
    page = newcomer.page
    page.goto(f"{office.url}/signin/")
    page.click("#passkey_login")
    page.wait_for_selector("#passkey-problem:visible")
    right = office.url.replace("127.0.0.1", "localhost")
    assert f"Passkeys work only at {right}" in page.inner_text("#passkey-problem")
