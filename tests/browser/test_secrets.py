"""An officer's tasks with secrets: hand one over, see what uses it, let a client in again."""

import re
from typing import Any
from uuid import uuid4

import pytest

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, find, press, says
from tests.browser.support.office import Office

TIN, TAXPAYER = "C7774440010", "Pasar Raya Timur Sdn Bhd"


@pytest.fixture
def client(office: Office) -> dict[str, Any]:
    """The credentials of a new ERP system, which logs in with them."""
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", TAXPAYER)
    issued: dict[str, Any] = manage("issue_credentials", TIN, "--name", f"Till {uuid4()}")
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
