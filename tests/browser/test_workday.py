"""A working day of a new registrar and a new security officer, click by click (the workplace).

It takes two of them to let a client in: one keeps the registry, the other hands out credentials.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, find, press, says
from tests.browser.support.office import Office
from tests.registry.workbooks import rows_of

TIN, CLIENT_NAME = "C7771234010", "Perniagaan Baru Sdn Bhd"
DEPOTS_TIN, DEPOTS = "C7771119990", ("Depot Ipoh", "Depot Kluang", "Depot Muar")
REFUSED = (400, 401, 403)  # which of them is the contract's business, not that of these pages


def handed_over(page: Any) -> tuple[str, str]:
    """Client id and secret, from the page that shows them once."""
    page.locator("#client-secret").wait_for()
    secret = page.locator("#client-secret").inner_text()
    page.get_by_role("button", name="Copy the client secret").click()
    says(page, "Copied.")
    return page.locator("#client-id").inner_text(), secret


def never_again(page: Any, secret: str) -> None:
    """Neither back, nor a reload there, nor forward shows it."""
    assert secret not in page.url
    page.goto("/admin/")
    for go in (page.go_back, page.reload, page.go_back, page.go_forward):
        with suppress(Exception):  # Chromium does not send the form again by itself
            go()
        page.wait_for_timeout(500)
        assert secret not in page.content()


def test_a_client_is_let_in_stopped_explained_and_given_a_new_secret(office: Office) -> None:
    _register_an_intermediary(office, office.page("registrar"))
    officer = office.page("security officer")
    client_id, secret = _issue_credentials(office, officer)
    user_page = officer.url.partition("?")[0]
    token = office.log_in(client_id, secret).json()["access_token"]
    assert office.is_active(token)
    reference = _block(office, officer, client_id, secret)
    _explain(office.page("viewer"), reference)
    officer.goto(user_page)
    _unblock(officer)
    assert not office.is_active(token)
    says(_explained(office.page("viewer"), reference), "Your ERP system can log in again now.")
    _change_the_secret(office, officer, client_id, secret)
    for text in ("Secret seen in a ticket", "The ticket was deleted", "by kumar"):
        says(officer, text)  # in the history, with who and why


def _register_an_intermediary(office: Office, registrar: Any) -> None:
    """A new taxpayer becomes an intermediary, and may act for another one."""
    registrar.goto("/admin/taxpayers/taxpayer/")
    press(registrar, "Register taxpayer")
    registrar.get_by_label("TIN", exact=True).fill(TIN)
    registrar.get_by_label("Name", exact=True).fill(CLIENT_NAME)
    press(registrar, "Register a taxpayer")
    says(registrar, f"Registered the taxpayer: {CLIENT_NAME} ({TIN})")
    press(registrar, "Register as intermediary")
    assert registrar.get_by_label("Taxpayer", exact=True).input_value() == TIN
    press(registrar, "Register an intermediary")
    says(registrar, "Registered as an intermediary: ")
    press(registrar, "Grant permission")
    represented = office.credentials["taxpayer"]["tin"]
    registrar.get_by_label("Represented taxpayer").fill(represented)
    registrar.get_by_label("documents:submit").check()
    press(registrar, "Grant a permission")
    says(registrar, "Granted a permission: ")
    find(registrar, "taxpayers/taxpayer", represented)
    says(registrar, CLIENT_NAME)  # who may act for it


def _issue_credentials(office: Office, officer: Any) -> tuple[str, str]:
    """Client id and secret, which are shown once; then the page of the system user."""
    find(officer, "taxpayers/taxpayer", TIN)
    press(officer, "Issue credentials")
    officer.get_by_label("Name of the ERP system").fill("AutoCount")
    officer.get_by_label("Only on behalf of others").uncheck()
    officer.get_by_label("Reason").fill("Asked by letter")
    press(officer, "Issue credentials")
    client_id, first_secret = handed_over(officer)
    assert office.log_in(client_id, first_secret).status_code == 200
    never_again(officer, first_secret)
    find(officer, "taxpayers/systemuser", client_id)
    assert first_secret not in officer.content()
    says(officer, first_secret[-4:])  # the hint by which both sides know it
    return client_id, first_secret


def _block(office: Office, officer: Any, client_id: str, secret: str) -> str:
    """First what it would have refused, then a reason, then a refusal: the reference of that."""
    press(officer, "Block")
    says(officer, "Logins that this would have refused in the last 7 days")
    says(officer, "2 logins")
    press(officer, "Block the system user")
    says(officer, "This field is required.")
    officer.get_by_label("Reason").fill("Secret seen in a ticket")
    press(officer, "Block the system user")
    says(officer, "Blocked the system user: ")
    says(officer, "Secret seen in a ticket")
    refused = office.log_in(client_id, secret)
    assert refused.status_code in REFUSED
    reference = re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", refused.text)
    assert reference is not None, refused.text
    return reference[0]


def _explain(viewer: Any, reference: str) -> None:
    """The person at the telephone pastes the reference and reads what happened."""
    _explained(viewer, reference)
    assert "blocked" in viewer.locator(".check-failed").inner_text().lower()
    assert viewer.locator(".check-passed").count() > 0
    press(viewer, "Simulate this login now")
    says(viewer, "The login would be refused")


def _explained(viewer: Any, reference: str) -> Any:
    find(viewer, "tokens/loginevent", reference)
    says(viewer, "Why did this login fail?")
    return viewer


def _unblock(officer: Any) -> None:
    press(officer, "Unblock")
    says(officer, "Tokens from before the block stay ended.")
    says(officer, "Reason: Secret seen in a ticket")
    says(officer, "What was valid before the block works again.")
    officer.get_by_label("Reason").fill("The ticket was deleted")
    press(officer, "Unblock the system user")
    says(officer, "Unblocked the system user: ")


def _change_the_secret(office: Office, officer: Any, client_id: str, first_secret: str) -> None:
    """A new secret beside the first one, which then ends."""
    user_page = officer.url.partition("?")[0]
    press(officer, "Issue a new secret")
    officer.get_by_label("Reason").fill("The first one leaked")
    press(officer, "Issue a new secret")
    _same_id, second_secret = handed_over(officer)
    never_again(officer, second_secret)
    assert office.log_in(client_id, first_secret).status_code == 200
    assert office.log_in(client_id, second_secret).status_code == 200
    officer.goto(user_page)
    officer.locator("#secrets").get_by_role("link", name=f"Revoke …{first_secret[-4:]}").click()
    says(officer, "It is in use.")  # it was, a moment ago
    officer.get_by_label("Last characters").fill(first_secret[-4:])
    officer.get_by_label("Reason").fill("The new one is in use")
    press(officer, "Revoke")
    says(officer, "Revoked a secret: ")
    assert office.log_in(client_id, first_secret).status_code in REFUSED
    assert office.log_in(client_id, second_secret).status_code == 200


def test_a_file_is_imported_in_2_clicks_and_exported_in_1(office: Office, tmp_path: Path) -> None:
    page, file = office.page("registrar"), tmp_path / "taxpayers.csv"
    file.write_text("tin,rob,name,active\nC7771234020,,Kilang Papan Jaya Sdn Bhd,yes\n")
    clicks = Clicks(page)
    page.goto("/admin/taxpayers/taxpayer/import_registry/")
    page.locator("input[type=file]").set_input_files(file)
    press(page, "Show the preview")
    press(page, "Register 1 taxpayer")
    says(page, "1 taxpayer is registered.")
    assert clicks.count == 2
    page.goto("/admin/taxpayers/taxpayer/?q=C77712340")
    exported = b""
    for form in ("csv", "xlsx"):
        with page.expect_download() as download:
            press(page, f"Export {form.upper()}")
        assert download.value.suggested_filename.startswith("taxpayer-2")
        assert download.value.suggested_filename.endswith(f".{form}")
        exported = download.value.path().read_bytes()
    assert "C7771234020" in {row[0] for row in rows_of(exported)}


def test_several_clients_are_stopped_at_once_in_4_clicks(office: Office) -> None:
    manage = office.service.manage
    manage("register_taxpayer", DEPOTS_TIN, "--name", "Pengedar Selatan Sdn Bhd")
    for name in DEPOTS:
        manage("issue_credentials", DEPOTS_TIN, "--name", name)
    page = office.page("security officer")
    clicks = Clicks(page)
    page.goto(f"/admin/taxpayers/systemuser/?q={DEPOTS_TIN}")
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
