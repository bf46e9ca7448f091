"""What ends soon as a piece of work: found, extended, imported, click by click."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, press, says
from tests.browser.support.office import Office

TIN = "C7775560010"
ERPS = ("Kedai Muar", "Kedai Batu Pahat", "Kedai Segamat")


@pytest.fixture(scope="module")
def ending(whole_office: Office) -> list[dict[str, Any]]:
    """Three system users of one taxpayer that end tomorrow."""
    day = (timezone.localtime() + timedelta(days=1)).date().isoformat()
    manage = whole_office.service.manage
    manage("register_taxpayer", TIN, "--name", "Kedai Runcit Johor Sdn Bhd")
    return [manage("issue_credentials", TIN, "--name", name, "--expires", day) for name in ERPS]


def test_two_system_users_that_end_soon_are_extended_in_6_clicks(
    office: Office, ending: list[dict[str, Any]]
) -> None:
    page = office.page("security officer")
    clicks = Clicks(page)
    page.get_by_role("link", name="Ending soon").click()
    page.get_by_role("navigation", name="Kind").get_by_role("link", name="System user").click()
    for name in ERPS[:2]:
        page.get_by_label(f"Select {name}").check()
    page.emulate_media(color_scheme="dark")
    press(page, "Extend the selected records")
    says(page, "2 selected")
    row = page.locator("table.selected tbody tr", has_text=ERPS[0])
    now, then = row.locator("td").nth(1).inner_text(), row.locator("td").nth(2).inner_text()
    assert f"{timezone.localtime().year}" in now or f"{timezone.localtime().year + 1}" in now
    assert "+ 1 year from the old end" in then
    assert violations(page) == []
    page.get_by_label("Reason").fill("Contract renewed")
    press(page, "Extend the selected records")
    says(page, "2 done")
    assert clicks.count == 6
    left = page.locator("tbody").inner_text()
    assert [name in left for name in ERPS] == [False, False, True]


def test_all_rows_are_selected_and_the_list_is_printed_in_2_clicks(
    office: Office, ending: list[dict[str, Any]]
) -> None:
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto("/admin/ending-soon/?kind=system_user&within=7")
    page.get_by_label("Select all").check()
    boxes = page.locator("[name=selected]")
    assert boxes.count() >= 1
    assert all(box.is_checked() for box in boxes.all())
    press(page, "List to print")
    says(page, "Called")
    page.emulate_media(media="print")
    assert not page.get_by_role("link", name="Today").is_visible()
    assert page.get_by_text(TIN).first.is_visible()
    assert clicks.count == 2
