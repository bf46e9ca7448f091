"""Staff accounts, click by click: the first password, and the end of a session."""

from tests.browser import open_window
from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, press, says
from tests.browser.support.office import Office

OWN_PASSWORD = "the-rain-in-Ipoh-4711"


def test_a_colleague_gets_an_account_in_5_clicks_and_chooses_a_password(office: Office) -> None:
    page = office.page("account manager")
    clicks = Clicks(page)
    page.get_by_role("link", name="Staff accounts").first.click()
    press(page, "Create account")
    page.get_by_label("Name", exact=True).fill("Chong Wei Ming")
    page.get_by_label("User name").fill("chong")
    page.get_by_label("Viewer").check()
    page.get_by_label("Reason").fill("Joins the help desk")
    press(page, "Create a staff account")
    page.locator("#first-password").wait_for()
    password = page.locator("#first-password").inner_text()
    assert violations(page) == []
    page.get_by_role("button", name="Copy the first password").click()
    says(page, "Copied.")
    assert clicks.count == 5
    page.reload()
    assert password not in page.content()

    window = open_window(office.chromium, base_url=office.url, locale="en-GB")
    page = window.page
    page.goto("/admin/")
    page.get_by_label("User name").fill("chong")
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/password/own/")
    assert violations(page) == []
    page.get_by_label("Your new password").fill(OWN_PASSWORD)
    page.get_by_label("The same password again").fill(OWN_PASSWORD)
    press(page, "Save my password")
    says(page, "Your new password is saved.")
    page.context.close()
    assert window.complaints == []


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
