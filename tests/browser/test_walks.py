"""An officer, an auditor and a security administrator at work: what only a browser can break."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from identity.staff.management.commands.verify_history import verify
from taxpayers.credentials import new_client_secret
from taxpayers.models import Taxpayer
from tests.browser import open_window
from tests.browser.conftest import StartOffice
from tests.browser.support.clicks import find, press, says
from tests.browser.support.office import Office
from tests.browser.test_workday import handed_over, never_again
from tests.client_auth.key_erp import jwks, new_pair

TIN, FOCUSED = "C2581234020", "document.activeElement.name"
NO_PART = ".today summary, #navigation, .inline-action"
A4 = {"width": 794, "height": 1123}  # at 96 dots an inch
CONTROLS = f":is(button, .button, input, select, textarea, {NO_PART}):visible"


@pytest.fixture(scope="module")
def office(start_office: StartOffice) -> Office:
    """A service of its own: its key is stopped."""
    return start_office()


@pytest.fixture(autouse=True)
def no_complaints(office: Office) -> Any:
    yield
    assert office.close_windows() == []


def test_an_officer(office: Office, tmp_path: Path) -> None:
    page, secret = office.page("security officer"), new_client_secret("test")
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    for field in ("#search-field", "#searchbar"):
        page.goto("/admin/taxpayers/systemuser/")
        page.locator(field).fill(secret)
        page.locator(field).press("Enter")
        says(page, "Treat it as compromised")
        assert secret not in page.content()
    assert not [address for address in addresses if secret in address]

    page.goto("/admin/taxpayers/systemuser/issue_credentials/")
    assert page.evaluate(FOCUSED) == "taxpayer"
    page.keyboard.type(TIN)
    page.get_by_role("button", name="Issue credentials").click()
    page.locator(".field-error").first.wait_for()
    assert page.evaluate(FOCUSED) == "name"
    page.keyboard.type("Key ERP")
    last_day = page.get_by_label("Last day of the system user")
    last_day.fill("2020-01-01")
    page.get_by_label("Reason").fill("A new ERP system")
    press(page, "Issue credentials")
    says(page, "Choose a later date")
    assert page.evaluate(FOCUSED) == "expires"
    last_day.fill("")
    page.get_by_label("A private key").check()
    (tmp_path / "jwks.json").write_text(jwks(new_pair(kid="walk")))
    page.get_by_label("Or its file").set_input_files(tmp_path / "jwks.json")
    press(page, "Issue credentials")
    says(page, "Key ERP is registered. Its client ID is")
    client_id = page.locator("code", has_text="ci_test_").first.inner_text()
    assert page.locator("#client-secret").count() == 0
    assert page.locator(".page-head .buttons .button:visible").count() == 4  # with More

    _finds_the_client(page, client_id)


def _finds_the_client(page: Any, client_id: str) -> None:
    page.goto("/admin/")
    page.keyboard.press("Control+k")
    page.keyboard.type(client_id)
    page.keyboard.press("Enter")  # on the one exact hit
    page.wait_for_url("**/systemuser/*/change/")
    press(page, "Block")
    says(page, client_id)
    says(page, "Only a security officer can unblock it.")
    press(page, "Cancel")
    press(page, "Change to a secret")
    assert page.locator(".lead").inner_text().endswith(f"({TIN}) · {client_id}")
    press(page, "Cancel")
    press(page, "Simulate a login")
    page.locator("#searchbar, [name=client_id]").first.wait_for()
    says(page, "not checked")
    page.goto("/admin/tokens/loginevent/")
    page.get_by_role("button", name="Filters").click()
    times = page.locator("#changelist-filter").locator("input:visible, a[href*=period]")
    assert times.count() == 4 + 2  # periods; from and to: there is no other way


def test_a_printed_page_has_no_controls_and_says_who_printed_it(office: Office) -> None:
    page = office.page("security officer")
    page.goto("/admin/taxpayers/systemuser/?q=Opera")
    record = page.locator("#result_list tbody a[href*='/change/']").first.get_attribute("href")
    screen = page.viewport_size
    for path, chosen in (
        ("/admin/taxpayers/systemuser/?state=blocked", "State: Blocked"),
        ("/admin/", "Today"),
        ("/admin/taxpayers/change/report/?since=2026-01-31", "From: 31 Jan 2026"),
        ("/admin/ending-soon/?within=7", "Within 7 days"),
        (record, "Last used"),
    ):
        page.goto(path)
        assert "Printed by" not in page.inner_text("main")
        page.emulate_media(media="print")
        page.set_viewport_size(A4)
        assert page.locator("h1").is_visible()
        tables = "all => all.map(table => getComputedStyle(table).display)"
        assert {"table"} >= {*page.locator("#result_list, .rows").evaluate_all(tables)}, path
        assert page.locator(CONTROLS).count() == 0, path
        printed = page.inner_text("main")
        assert chosen in printed
        assert "Printed by kumar" in printed
        assert "Ended in the last 30 days" not in printed  # what was not chosen
        page.emulate_media(media="screen")
        page.set_viewport_size(screen)


def test_an_auditor(office: Office) -> None:
    stranger = open_window(office.chromium, base_url=office.url, locale="en-GB").page
    stranger.goto("/signin/")
    stranger.get_by_label("User name").fill("kumar")
    stranger.get_by_label("Password", exact=True).fill("wrong")
    stranger.get_by_label("Password", exact=True).press("Enter")
    stranger.get_by_text("the password is wrong").wait_for()
    stranger.context.close()
    page = office.page("auditor")
    page.goto("/admin/staff/staffsignin/?outcome=failed")
    assert "kumar" in page.locator("#result_list").inner_text()
    assert page.locator("#sessions").get_by_role("link", name="End").count() == 0

    page.goto("/admin/taxpayers/change/")
    assert page.url.endswith("/change/report/")  # there is no other list
    office.service.run(lambda: Taxpayer.objects.filter(tin=TIN).update(name="Forged Sdn Bhd"))
    office.service.run(lambda: verify(timezone.now()))
    page.reload()
    alarm = page.get_by_role("alert").inner_text()
    assert TIN in alarm
    assert "Forged Sdn Bhd" in alarm
    navigation = page.locator("#navigation")
    assert navigation.is_visible()
    assert navigation.get_by_text("Permission codes").count() == 0


def test_a_security_administrator(office: Office) -> None:
    page = office.page("security officer")
    page.goto("/admin/webhooks/webhookendpoint/")
    says(page, "operators by manage.py register_webhook")
    page.goto("/admin/tokens/protectedapi/register_protected_api/")
    page.keyboard.type("Archive")
    page.get_by_label("Reason").fill("A new API")
    press(page, "Register a protected API")
    never_again(page, handed_over(page)[1])

    page.goto("/admin/tokens/signingkey/")
    page.locator("#result_list tbody a").first.click()
    kid = page.locator("h1").inner_text()
    press(page, "Stop: the key is compromised")
    assert re.search(r"\d+ clients? ha(s|ve) a token of this key", page.inner_text("main"))
    page.keyboard.type("another")
    page.get_by_label("Reason").fill("Laptop stolen")
    press(page, "Stop: the key is compromised")
    page.locator(".field-error").first.wait_for()
    assert page.evaluate(FOCUSED) == "hint"
    page.get_by_label("Last six characters").fill(kid[-6:])
    press(page, "Stop: the key is compromised")
    says(page, f"The key {kid} is stopped: no token that it signed is accepted.")
    find(page, "taxpayers/systemuser", TIN)
