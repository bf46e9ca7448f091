"""Staff accounts, click by click: from the first password to the last day of a colleague."""

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from tests.browser import open_window
from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, find, press, says
from tests.browser.support.office import Office
from tests.support.accounts import PASSWORD, new_staff, with_totp

OWN_PASSWORD = "the-rain-in-Ipoh-4711"


@pytest.fixture
def newcomer(office: Office) -> Iterator[Any]:
    """The page of somebody who has never signed in."""
    window = open_window(office.chromium, base_url=office.url, locale="en-GB")
    yield window.page
    window.page.context.close()
    assert window.complaints == []


def sign_in(page: Any, name: str, password: str) -> None:
    page.goto("/admin/")
    give_password(page, name, password)


def give_password(page: Any, name: str, password: str) -> None:
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_colleague_gets_an_account_in_5_clicks_another_role_in_3_and_leaves_in_2(
    office: Office, newcomer: Any
) -> None:
    manager, colleague = office.page("account manager"), newcomer
    clicks = Clicks(manager)
    password = _create(manager)
    assert clicks.count == 5  # the last one copies the password
    _start(colleague, password)
    find(manager, "staff/staffaccount", "chong")
    clicks.reset()
    _give_another_role(manager)
    assert clicks.count == 3
    clicks.reset()
    _deactivate(manager)
    assert clicks.count == 2
    colleague.goto("/admin/")
    colleague.wait_for_url("**/signin/**")


def _create(page: Any) -> str:
    """The first password, which is shown once."""
    page.goto("/admin/")
    page.get_by_role("link", name="Staff accounts").first.click()
    press(page, "Create account")
    page.get_by_label("Name", exact=True).fill("Chong Wei Ming")
    page.get_by_label("User name").fill("chong")
    page.get_by_label("Viewer").check()
    page.get_by_label("Reason").fill("Joins the help desk")
    press(page, "Create a staff account")
    page.locator("#first-password").wait_for()
    password = str(page.locator("#first-password").inner_text())
    assert violations(page) == []
    page.get_by_role("button", name="Copy the first password").click()
    says(page, "Copied.")
    page.reload()
    assert password not in page.content()
    return password


def _start(page: Any, password: str) -> None:
    """Choose a password; then the second step comes next."""
    sign_in(page, "chong", password)
    page.wait_for_url("**/password/own/")
    assert violations(page) == []
    page.get_by_label("Your new password").fill(OWN_PASSWORD)
    page.get_by_label("The same password again").fill(OWN_PASSWORD)
    press(page, "Save my password")
    says(page, "Your new password is saved.")


def _give_another_role(page: Any) -> None:
    press(page, "Change role")
    page.get_by_label("Registrar").check()
    page.get_by_label("Reason").fill("Moves to the registry")
    assert violations(page) == []
    press(page, "Change the role")
    says(page, "The role of Chong Wei Ming (chong) is changed.")
    says(page, "Moves to the registry")


def _deactivate(page: Any) -> None:
    press(page, "Deactivate")
    page.get_by_label("Reason").fill("Leaves the authority")
    press(page, "Deactivate the account")
    says(page, "can no longer sign in.")
    assert violations(page) == []


def test_a_form_comes_back_after_the_session_has_ended(office: Office, newcomer: Any) -> None:
    page, codes = newcomer, office.service.run(_new_registrar)
    page.goto("/admin/taxpayers/taxpayer/register_taxpayer/")
    give_password(page, "hafiz", PASSWORD)
    page.locator("[name=code]").fill(codes[0])
    press(page, "Sign in")
    page.wait_for_url("**/register_taxpayer/")
    page.get_by_label("TIN", exact=True).fill("C7773331230")
    page.get_by_label("Name", exact=True).fill("Kedai Buku Melaka")
    office.service.run(_end_sessions_of_hafiz)
    press(page, "Register a taxpayer")
    says(page, "After you sign in, the form shows what you entered.")
    give_password(page, "hafiz", PASSWORD)
    page.locator("[name=code]").fill(codes[1])
    press(page, "Sign in")
    says(page, "Nothing was saved, because your session had ended.")
    assert violations(page) == []
    press(page, "Register a taxpayer")
    says(page, "is registered.")


def _new_registrar() -> list[str]:
    """The recovery codes: an app shows another code only after half a minute."""
    user = with_totp(new_staff("registrar", "hafiz"))
    codes: list[str] = RecoveryCodes.activate(user).generate_codes()
    return codes


def _end_sessions_of_hafiz() -> None:
    user = User.objects.get(username="hafiz")
    for session in Session.objects.all():
        if session.get_decoded().get("_auth_user_id") == str(user.pk):
            Session.objects.filter(pk=session.pk).update(expire_date=timezone.now())


def test_a_form_warns_before_its_session_ends_and_1_click_keeps_it(office: Office) -> None:
    page = office.page("registrar")
    page.clock.install()
    page.goto("/admin/taxpayers/taxpayer/register_taxpayer/")
    warning = page.locator("[data-session-seconds]")
    assert not warning.is_visible()
    page.clock.fast_forward("28:30")
    says(page, "Your session ends in less than two minutes.")
    assert violations(page) == []
    page.get_by_role("button", name="Stay signed in").click()
    warning.wait_for(state="hidden")
    page.clock.fast_forward("31:00")
    says(page, "Your session has ended.")
