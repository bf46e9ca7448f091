"""A caller asks why a login failed; an officer looks for what goes wrong: click by click."""

from typing import Any

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import press, says
from tests.browser.support.office import PHONE, Office

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
