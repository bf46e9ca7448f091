"""Lists as staff use them: exported to a file, and several records blocked at once."""

import csv
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, press, says
from tests.browser.support.office import Office
from tests.registry import workbooks

DEPOTS = ("Depot Ipoh", "Depot Kluang", "Depot Muar")


def rows_of(path: Path, form: str) -> list[list[str]]:
    """Every row of the file, its header first."""
    if form == "csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.reader(file))
    return workbooks.rows_of(path.read_bytes())


@pytest.mark.parametrize("form", ["csv", "xlsx"])
@pytest.mark.parametrize(
    ("kind", "query", "column"),
    [("taxpayer", "q=C25812340", "name"), ("systemuser", "state=90", "client_id")],
)
def test_an_export_opens_and_has_the_rows_that_are_on_screen(
    office: Office, kind: str, query: str, column: str, form: str
) -> None:
    page = office.page("registrar")
    page.goto(f"/admin/taxpayers/{kind}/?{query}")
    shown = page.locator(f"#result_list .field-{column}, #result_list .field-{column}_shown")
    names = [name.strip() for name in shown.all_inner_texts()]
    assert 2 < len(names) < 25  # one page of the list, and not the whole list
    with page.expect_download() as download:
        press(page, f"Export {form.upper()}")
    assert download.value.suggested_filename.startswith(f"{kind}-2")
    assert download.value.suggested_filename.endswith(f".{form}")
    header, *rows = rows_of(download.value.path(), form)
    assert [row[header.index(column)] for row in rows] == names


@pytest.fixture
def tin() -> str:
    """Of a taxpayer of this test alone."""
    return f"C{uuid4().int % 10**10:010}"


@pytest.fixture
def depots(office: Office, tin: str) -> list[dict[str, Any]]:
    """Three ERP systems of one taxpayer, with their credentials."""
    manage = office.service.manage
    manage("register_taxpayer", tin, "--name", "Pengedar Selatan Sdn Bhd")
    return [manage("issue_credentials", tin, "--name", name) for name in DEPOTS]


def test_several_clients_are_stopped_at_once_in_4_clicks_and_let_in_again_in_4(
    office: Office, tin: str, depots: list[dict[str, Any]]
) -> None:
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto(f"/admin/taxpayers/systemuser/?q={tin}")
    for name in DEPOTS[:2]:
        row_of(page, name).get_by_role("checkbox").check()
    page.get_by_label("Select action to run").select_option("Block the selected system users")
    page.get_by_role("button", name="Run").click()
    says(page, "2 selected")
    selected = page.locator("table.selected").inner_text()
    assert [name in selected for name in DEPOTS] == [True, True, False]
    press(page, "Block the selected system users")
    says(page, "This field is required.")
    assert logins(office, depots) == [200, 200, 200]

    page.get_by_label("Reason").fill("The depots were sold")
    press(page, "Block the selected system users")
    says(page, "2 done")
    assert clicks.count - 1 == 4  # one was too early
    states = [row_of(page, name).locator(".field-state").inner_text() for name in DEPOTS]
    assert states == ["Blocked", "Blocked", "Active"]
    assert logins(office, depots) == [400, 400, 200]

    clicks.reset()
    for name in DEPOTS[:2]:
        row_of(page, name).get_by_role("checkbox").check()
    page.get_by_label("Select action to run").select_option("Unblock the selected system users")
    page.get_by_role("button", name="Run").click()
    says(page, "The depots were sold")  # why each was blocked
    says(page, "Works again: secret …")
    assert violations(page) == []
    page.get_by_label("Reason").fill("The sale was undone")
    press(page, "Unblock the selected system users")
    says(page, "2 done")
    assert clicks.count == 4
    assert logins(office, depots) == [200, 200, 200]


def test_the_secrets_of_several_clients_are_revoked_after_a_leak_in_6_clicks(
    office: Office, tin: str, depots: list[dict[str, Any]]
) -> None:
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto(f"/admin/taxpayers/systemuser/?q={tin}")
    for name in DEPOTS[:2]:
        row_of(page, name).get_by_role("checkbox").check()
    task = "Revoke secrets, keys and certificates of the selected system users"
    page.get_by_label("Select action to run").select_option(task)
    page.get_by_role("button", name="Run").click()
    says(page, "None of them is safe to revoke.")
    page.get_by_label("Every valid one, used or not").check()
    press(page, "Show the preview again")
    says(page, f"Revoked: secret …{depots[0]['secret_hint']}. Nothing else is valid")
    assert violations(page) == []
    page.get_by_label("Reason").fill("The maker of the ERP system was attacked")
    press(page, task)
    says(page, "2 done")
    assert clicks.count == 6
    assert logins(office, depots) == [400, 400, 200]


def row_of(page: Any, name: str) -> Any:
    """The row of the list with that name."""
    return page.locator("#result_list tbody tr", has_text=name)


def logins(office: Office, clients: list[dict[str, Any]]) -> list[int]:
    """With which status each of them is answered now."""
    return [
        office.log_in(client["client_id"], client["client_secret"]).status_code
        for client in clients
    ]
