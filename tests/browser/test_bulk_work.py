"""Several records of a list are selected, and blocked at once."""

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, press, says
from tests.browser.support.office import Office

TIN, DEPOTS = "C7771119990", ("Depot Ipoh", "Depot Kluang", "Depot Muar")


def test_several_clients_are_stopped_at_once_in_4_clicks(office: Office) -> None:
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", "Pengedar Selatan Sdn Bhd")
    for name in DEPOTS:
        manage("issue_credentials", TIN, "--name", name)
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto(f"/admin/taxpayers/systemuser/?q={TIN}")
    bar = page.locator(".actions")
    rows = [page.locator("#result_list tbody tr", has_text=name) for name in DEPOTS]
    assert not bar.is_visible()
    for row in rows[:2]:
        row.get_by_role("checkbox").check()
    assert "2 of 3 selected" in bar.inner_text()
    page.get_by_label("Select action to run").select_option("Block the selected system users")
    page.get_by_role("button", name="Run").click()
    says(page, "2 selected")
    assert violations(page) == []
    page.get_by_label("Reason").fill("The depots were sold")
    press(page, "Block the selected system users")
    says(page, "2 done")
    assert clicks.count == 4
    states = [row.locator(".field-state").inner_text() for row in rows]
    assert states == ["Blocked", "Blocked", "Active"]
