"""Tasks of staff, click by click: accounts, answers for callers, secrets that are handed over."""

import re
from typing import Any
from uuid import uuid4

import pytest

from tests.browser import open_window
from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, find, press, says
from tests.browser.support.office import PHONE, Office

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


FOLD = 720
LOGINS = "/admin/tokens/loginevent/?reason=system_user_blocked"


def lowest(page: Any, selector: str) -> float:
    """Where the element ends, in pixels below the top of the window."""
    box = page.locator(selector).bounding_box()
    return float(box["y"] + box["height"])


def test_a_refused_login_is_explained_in_1_click_and_its_cure_opens_in_2(office: Office) -> None:
    page = office.page("security officer")
    page.goto(LOGINS)
    page.locator("#result_list tbody a[href*='/change/']").last.click()  # 1
    page.set_viewport_size({"width": 1280, "height": FOLD})
    assert "System user not blocked" in page.locator(".verdict").inner_text()
    assert lowest(page, ".verdict") < FOLD
    assert lowest(page, "#caller-ms") < FOLD
    english = page.locator("#caller-en").inner_text()
    assert english.startswith("We blocked your system user on ")
    page.get_by_role("button", name="Copy English").press("Enter")
    says(page, "Copied.")
    says(page, "Reason: Sends invoices of another company")
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    phone = office.page("viewer", "phone")
    phone.goto(page.url)
    assert lowest(phone, ".verdict") < PHONE["height"]
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    says(phone, "(security officer)")
    press(page, "Unblock the system user")  # 2
    page.wait_for_url("**/unblock_system_user/**")


TIN, TAXPAYER = "C7774440010", "Pasar Raya Timur Sdn Bhd"


@pytest.fixture
def client(office: Office) -> dict[str, Any]:
    """The credentials of a new ERP system, which logs in with them."""
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", TAXPAYER)
    issued: dict[str, Any] = manage("issue_credentials", TIN, "--name", f"Till {uuid4().hex[:8]}")
    assert office.log_in(issued["client_id"], issued["client_secret"]).status_code == 200
    return issued


def test_a_new_secret_is_handed_over_whole_in_three_clicks(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    clicks = Clicks(page)
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks.reset()
    press(page, "Issue a new secret")
    page.get_by_label("Reason").fill("Asked by letter")
    press(page, "Issue a new secret")
    secret = page.locator("#client-secret").inner_text()
    press(page, "Copy all")
    says(page, "Copied.")
    assert clicks.count == 3
    copied = page.evaluate("navigator.clipboard.readText()")
    for part in (TAXPAYER, TIN, client["client_id"], secret, f"{office.url}/connect/token"):
        assert part in copied
    assert re.search(rf"^curl .* -d client_secret={secret}$", copied, re.MULTILINE)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert violations(page) == []
    page.emulate_media(color_scheme="light", media="print")
    assert page.locator(".sheet").get_by_text(secret, exact=True).is_visible()
    assert not page.get_by_role("button", name="Copy all").is_visible()
    assert not page.locator(".page-head h1").is_visible()
    # A page that the browser stores in memory and shows again on "back" has lost the secret.
    page.evaluate("window.dispatchEvent(new PageTransitionEvent('pagehide'))")
    assert secret not in page.content()


def test_the_browser_asks_before_a_new_secret_is_left_that_nobody_copied(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    press(page, "Issue a new secret")
    page.get_by_label("Reason").fill("Asked by letter")
    press(page, "Issue a new secret")
    page.locator("#client-secret").wait_for()
    asked: list[str] = []

    def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss() if len(asked) == 1 else dialog.accept()

    page.on("dialog", answer)
    page.get_by_role("button", name="Copy the client ID").click()  # not the secret
    press(page, "Go to the system user")
    page.wait_for_timeout(0)
    assert page.locator("#client-secret").is_visible()  # stayed: nothing is lost
    assert asked == ["beforeunload"]
    page.get_by_role("button", name="Copy the client secret").click()
    says(page, "Copied.")
    press(page, "Go to the system user")
    page.wait_for_url("**/change/**")
    assert asked == ["beforeunload"]
