"""An auditor's work: the report of a period, and who could act for whom on a date.

The number in the name of a test is how many clicks the task takes from the first page.
"""

from typing import Any

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import press, says
from tests.browser.support.office import Office

AS_OF, REPORT = "/admin/taxpayers/change/as_of/", "/admin/taxpayers/change/report/"


def open_history(page: Any) -> None:
    page.goto("/admin/")
    page.locator(f"a[href='{REPORT}']").first.click()
    page.wait_for_url(f"**{REPORT}")


def test_changes_of_this_year_are_reported_and_exported_with_three_clicks(office: Office) -> None:
    manage = office.service.manage
    manage("register_taxpayer", "C7771110010", "--name", "Audit Satu Sdn Bhd")
    issued = manage("issue_credentials", "C7771110010", "--name", "Audit ERP")
    page = office.page("auditor")
    open_history(page)
    press(page, "This year")
    page.wait_for_url("**since=**")
    line = page.locator("#tasks tbody tr", has_text=issued["client_id"]).first
    line.get_by_role("link", name=issued["client_id"]).first.wait_for()
    with page.expect_download() as download:
        press(page, "Export CSV")
    assert "Audit Satu Sdn Bhd" in download.value.path().read_text(encoding="utf-8-sig")
    page.reload()
    assert "Exported a list" in page.locator("#tasks tbody tr").first.inner_text()


def test_a_task_of_several_changes_opens_with_one_click(office: Office) -> None:
    page = office.page("auditor")
    page.goto(REPORT + "?by=demo+%28manage.py%29")
    task = page.locator("#tasks details").first
    assert not task.locator("ol").is_visible()
    task.locator("summary").press("Enter")
    task.locator("ol a").first.wait_for()
    assert violations(page) == []
    page.locator("#tasks tbody tr", has=page.locator("details")).locator("td a").first.click()
    page.wait_for_url("**/task/**")
    says(page, "Changes of one task")


def test_who_could_act_on_a_date_is_found_with_three_clicks(office: Office) -> None:
    page = office.page("auditor")
    open_history(page)
    press(page, "As of a date")
    page.get_by_label("Taxpayer or system user").fill(office.credentials["taxpayer"]["tin"])
    page.locator(".staff form button[type=submit]").click()
    answer = page.locator("section", has=page.locator("#acting-title"))
    text = answer.inner_text()
    assert office.credentials["intermediary"]["tin"] in text
    assert "Yes" in text
    assert "documents:submit, documents:view" in text
    assert answer.locator("svg.time-bar").first.is_visible()
    page.get_by_label("Day").fill("2001-01-01")
    page.locator(".staff form button[type=submit]").click()
    says(page, "Not known: the history begins on")
