"""A caller asks why a login failed; an officer looks for what goes wrong: click by click."""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import press, says
from tests.browser.support.office import PHONE, Office
from tokens.login_events.partitions import first_id

TIN, FOLD = "C7778880010", 720
LOGINS = "/admin/tokens/loginevent/"


@pytest.fixture
def refused(office: Office) -> str:
    """The reference of a login of a blocked system user."""
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", "Restoran Selera Kampung Sdn Bhd")
    issued = manage("issue_credentials", TIN, "--name", f"Selera POS {uuid4()}")
    manage("block_system_user", issued["client_id"], "--reason", "Secret sent by e-mail")
    answer = office.log_in(issued["client_id"], issued["client_secret"])
    return str(answer.headers["correlationId"])


def find_login(page: Any, term: str) -> None:
    page.goto(LOGINS)
    page.locator("#searchbar").fill(term)
    page.locator("#searchbar").press("Enter")
    page.wait_for_url("**q=**")


def lowest(page: Any, selector: str) -> float:
    """Where the element ends, in pixels below the top of the window."""
    box = page.locator(selector).bounding_box()
    return float(box["y"] + box["height"])


def test_a_refused_login_is_explained_and_cured_in_3_clicks(office: Office, refused: str) -> None:
    page = office.page("security officer")
    find_login(page, f"unauthorised_client. Reference: {refused}")
    page.locator("#result_list tbody a[href*='/change/']").first.click()  # 1
    page.set_viewport_size({"width": 1280, "height": FOLD})
    assert "Is the system user not blocked?" in page.locator(".verdict").inner_text()
    assert lowest(page, ".verdict") < FOLD
    assert lowest(page, "#caller-ms") < FOLD
    english = page.locator("#caller-en").inner_text()
    assert english.startswith("This system user was blocked on ")
    page.get_by_role("button", name="Copy English").press("Enter")
    says(page, "Copied.")
    says(page, "Reason: Secret sent by e-mail")
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    login = page.url
    phone = office.page("viewer", "phone")
    phone.goto(login)
    assert lowest(phone, ".verdict") < PHONE["height"]
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    says(phone, "(security officer)")
    press(page, "Unblock the system user")  # 2
    page.get_by_label("Reason").fill("A new secret was handed over")
    press(page, "Unblock the system user")  # 3
    says(page, "is unblocked.")
    page.goto(login)
    says(page, "Fixed since then.")
    says(page, "A new secret was handed over")
    assert violations(page) == []


def test_a_throttled_reference_is_explained_after_1_search(office: Office) -> None:
    page = office.page("viewer")
    made = UUID(int=first_id(timezone.now()).int | (7 << 76) | (1 << 63))
    find_login(page, str(made))
    says(page, "No record: this reference was made at")
    says(page, "Your ERP system sent too many logins")
    page.get_by_role("button", name="Copy Bahasa Melayu").or_(
        page.get_by_role("button", name=re.compile("^Copy (?!English)"))
    ).first.click()
    says(page, "Copied.")
    assert violations(page) == []


def test_a_bar_opens_its_hour_in_1_click_and_the_view_is_saved_in_2_and_opened_in_1(
    office: Office,
) -> None:
    page = office.page("auditor")
    page.goto("/admin/")
    page.locator("svg.bars a").nth(12).click()  # 1: the bar
    page.wait_for_url("**/loginevent/**")
    asked = parse_qs(urlsplit(page.url).query)
    assert asked.keys() == {"from", "to"}
    assert page.locator(".chip-text").count() == 1
    page.goto(f"{LOGINS}?reason=refused&period=30")
    page.get_by_text("Save this view").click()  # 1
    page.get_by_label("Name of the view").fill("Refused this month")
    page.get_by_role("button", name="Save", exact=True).click()  # 2
    says(page, "The view Refused this month is saved.")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.goto(LOGINS)
    page.get_by_role("link", name="Refused this month").click()  # 1
    page.wait_for_url("**reason=refused**")
    page.get_by_role("link", name="Remove the filter Time range: Last 30 days").click()
    page.wait_for_url(lambda url: "period" not in url)
    assert page.locator(".chip-remove").count() == 2  # the other filter, and the saved view
    page.get_by_role("button", name="Delete the saved view Refused this month").click()
    says(page, "The view Refused this month is deleted.")
