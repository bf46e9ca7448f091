"""What ends soon as a piece of work: found, extended, imported, click by click."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, CountedClicks, press, says
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
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    press(page, "Extend the selected records")
    says(page, "2 selected")
    row = page.locator("table.selected tbody tr", has_text=ERPS[0])
    now, then = row.locator("td").nth(1).inner_text(), row.locator("td").nth(2).inner_text()
    assert f"{timezone.localtime().year}" in now or f"{timezone.localtime().year + 1}" in now
    assert "+ 1 year from the old end" in then
    found = violations(page)
    assert found == [], "\n".join(found)
    page.emulate_media(color_scheme="light")
    page.get_by_label("Reason").fill("Contract renewed")
    press(page, "Extend the selected records")
    says(page, "2 done")
    assert clicks.count == 6
    left = page.locator("tbody").inner_text()
    assert [name in left for name in ERPS] == [False, False, True]


def test_a_permission_is_extended_by_a_year_in_2_clicks(office: Office) -> None:
    page = office.page("registrar")
    page.goto("/admin/ending-soon/?kind=permission&within=90")
    page.locator("tbody a", has_text="→").first.click()
    clicks = CountedClicks(page)
    clicks.press("Extend")
    says(page, "+ 1 year from the old end.")
    page.get_by_label("Reason").fill("Asked for by the taxpayer")
    clicks.press("Extend the permission")
    says(page, "is now")
    assert clicks.count == 2
    says(page, "Changed the last day of the permission")


def test_the_secret_of_a_protected_api_is_renewed_where_it_is_listed_in_4_clicks(
    office: Office,
) -> None:
    day = (timezone.localtime() + timedelta(days=2)).date().isoformat()
    register = ("register_protected_api", "Kastam", "--audience", "InvoicingAPI")
    old = office.service.manage(*register, "--secret-expires", day)
    page = office.page("security officer")
    page.goto("/admin/")
    clicks = CountedClicks(page)
    page.get_by_role("row", name="Secrets of protected APIs").get_by_role("link").first.click()
    row = page.locator("tbody tr", has_text=f"…{old['secret_hint']}")
    assert "in 2 days" in row.inner_text()
    row.get_by_role("link", name="Issue a new secret").click()
    page.get_by_label("Reason").fill("It ends in two days")
    clicks.press("Issue a new secret")
    clicks.press("Copy all")
    says(page, "Copied.")
    assert clicks.count + 2 == 4
    page.goto("/admin/ending-soon/?kind=api_secret&within=7")
    assert "another secret is valid until" in row.inner_text()


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
    page.emulate_media(media="screen")
    assert clicks.count == 2


def test_system_users_are_imported_without_secrets_in_3_clicks(
    office: Office, tmp_path: Path
) -> None:
    office.service.manage("register_taxpayer", TIN, "--name", "Kedai Runcit Johor Sdn Bhd")
    file = tmp_path / "system-users.csv"
    file.write_text(f"taxpayer,name\n{TIN},Imported one\n{TIN},Imported two\n")
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto("/admin/taxpayers/systemuser/")
    press(page, "Import")
    page.locator("input[type=file]").set_input_files(file)
    press(page, "Show the preview")
    says(page, "Imported two")
    press(page, "Register 2 system users")
    says(page, "2 system users are registered.")
    assert clicks.count == 3
    page.goto("/admin/taxpayers/systemuser/?q=Imported")
    page.get_by_role("link", name="Imported one").click()
    says(page, "It has no secret, so it cannot log in.")
