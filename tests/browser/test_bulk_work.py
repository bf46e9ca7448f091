"""Lists as staff use them: exported to a file, and several records blocked at once."""

from typing import Any

import pytest

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, press, says
from tests.browser.support.office import Office

TIN, DEPOTS = "C7771119990", ("Depot Ipoh", "Depot Kluang", "Depot Muar")


@pytest.fixture
def depots(office: Office) -> list[dict[str, Any]]:
    """Three ERP systems of one taxpayer, with their credentials."""
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", "Pengedar Selatan Sdn Bhd")
    return [manage("issue_credentials", TIN, "--name", name) for name in DEPOTS]


def test_several_clients_are_stopped_at_once_in_4_clicks_and_let_in_again_in_4(
    office: Office, depots: list[dict[str, Any]]
) -> None:
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto(f"/admin/taxpayers/systemuser/?q={TIN}")
    bar = page.locator(".actions")
    assert not bar.is_visible()
    for name in DEPOTS[:2]:
        row_of(page, name).get_by_role("checkbox").check()
    assert "2 of 3 selected" in bar.inner_text()
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


def row_of(page: Any, name: str) -> Any:
    """The row of the list with that name."""
    return page.locator("#result_list tbody tr", has_text=name)


def logins(office: Office, clients: list[dict[str, Any]]) -> list[int]:
    """With which status each of them is answered now."""
    return [
        office.log_in(client["client_id"], client["client_secret"]).status_code
        for client in clients
    ]
