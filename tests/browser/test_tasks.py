"""Tasks of staff, click by click: a working day, accounts, answers for callers, secrets, paper."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from taxpayers.credentials import new_client_secret
from tests.browser import open_window
from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import Clicks, find, press, says
from tests.browser.support.office import PHONE, Office
from tests.client_auth.key_erp import jwks, new_pair
from tests.live.cluster import is_valid
from tests.registry.workbooks import rows_of

AGENT, CLIENT_NAME = "C7771234010", "Perniagaan Baru Sdn Bhd"
DEPOTS_TIN, DEPOTS = "C7771119990", ("Depot Ipoh", "Depot Kluang", "Depot Muar")
REFUSED = (400, 401, 403)  # which of them is the contract's business, not that of these pages


def handed_over(page: Any) -> tuple[str, str]:
    page.locator("#client-secret").wait_for()
    secret = page.locator("#client-secret").inner_text()
    page.get_by_role("button", name="Copy the client secret").click()
    says(page, "Copied.")
    return page.locator("#client-id").inner_text(), secret


def never_again(page: Any, secret: str) -> None:
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
    assert is_valid(office.service, token)
    reference = _block(office, officer, client_id, secret)
    _explain(office.page("viewer"), reference)
    officer.goto(user_page)
    _unblock(officer)
    assert not is_valid(office.service, token)
    says(_explained(office.page("viewer"), reference), "Your ERP system can log in again now.")
    for text in ("Secret seen in a ticket", "The ticket was deleted", "by kumar"):
        says(officer, text)  # in the history, with who and why


def _register_an_intermediary(office: Office, registrar: Any) -> None:
    registrar.goto("/admin/taxpayers/taxpayer/")
    press(registrar, "Register taxpayer")
    registrar.get_by_label("TIN", exact=True).fill(AGENT)
    registrar.get_by_label("Name", exact=True).fill(CLIENT_NAME)
    press(registrar, "Register a taxpayer")
    says(registrar, f"Registered the taxpayer: {CLIENT_NAME} ({AGENT})")
    press(registrar, "Register as intermediary")
    assert registrar.get_by_label("Taxpayer", exact=True).input_value() == AGENT
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
    find(officer, "taxpayers/taxpayer", AGENT)
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


OWN_PASSWORD = "the-rain-in-Ipoh-4711"


def test_a_colleague_gets_an_account_in_5_clicks_and_chooses_a_password(office: Office) -> None:
    page = office.page("account manager")
    clicks = Clicks(page)
    page.get_by_role("link", name="Staff accounts").first.click()
    press(page, "Create account")
    page.get_by_label("Name", exact=True).fill("Chong Wei Ming")
    page.get_by_label("User name").fill("chong")
    page.get_by_label("Viewer").check()
    page.get_by_label("Reason").fill("Joins the help desk")
    press(page, "Create a staff account")
    page.locator("#first-password").wait_for()
    password = page.locator("#first-password").inner_text()
    assert violations(page) == []
    page.get_by_role("button", name="Copy the first password").click()
    says(page, "Copied.")
    assert clicks.count == 5
    page.reload()
    assert password not in page.content()

    window = open_window(office.chromium, base_url=office.url, locale="en-GB")
    page = window.page
    page.goto("/admin/")
    page.get_by_label("User name").fill("chong")
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/password/own/")
    assert violations(page) == []
    page.get_by_label("Your new password").fill(OWN_PASSWORD)
    page.get_by_label("The same password again").fill(OWN_PASSWORD)
    press(page, "Save my password")
    says(page, "Your new password is saved.")
    page.context.close()
    assert window.complaints == []


def test_a_form_warns_before_its_session_ends_and_1_click_keeps_it(office: Office) -> None:
    page = office.page("registrar")
    page.clock.install()
    page.goto("/admin/taxpayers/taxpayer/register_taxpayer/")
    warning = page.locator("[data-session-seconds]")
    assert not warning.is_visible()
    page.clock.fast_forward("28:30")
    says(page, "Your session ends in less than two minutes.")
    assert violations(page) == []
    page.get_by_role("button", name="Stay signed in").click()
    warning.wait_for(state="hidden")
    page.clock.fast_forward("31:00")
    says(page, "Your session has ended.")


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


TIN, TAXPAYER = "C7774440010", "Pasar Raya Timur Sdn Bhd"


@pytest.fixture
def client(office: Office) -> dict[str, Any]:
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", TAXPAYER)
    issued: dict[str, Any] = manage("issue_credentials", TIN, "--name", f"Till {uuid4().hex[:8]}")
    assert office.log_in(issued["client_id"], issued["client_secret"]).status_code == 200
    return issued


def test_a_new_secret_is_handed_over_whole_in_three_clicks(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    clicks = Clicks(page)
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks.reset()
    press(page, "Issue a new secret")
    page.get_by_label("Reason").fill("Asked by letter")
    press(page, "Issue a new secret")
    secret = page.locator("#client-secret").inner_text()
    press(page, "Copy all")
    says(page, "Copied.")
    assert clicks.count == 3
    copied = page.evaluate("navigator.clipboard.readText()")
    for part in (TAXPAYER, TIN, client["client_id"], secret, f"{office.url}/connect/token"):
        assert part in copied
    assert re.search(rf"^curl .* -d client_secret={secret}$", copied, re.MULTILINE)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert violations(page) == []
    page.emulate_media(color_scheme="light", media="print")
    assert page.locator(".sheet").get_by_text(secret, exact=True).is_visible()
    assert not page.get_by_role("button", name="Copy all").is_visible()
    assert not page.locator(".page-head h1").is_visible()
    # A page that the browser stores in memory and shows again on "back" has lost the secret.
    page.evaluate("window.dispatchEvent(new PageTransitionEvent('pagehide'))")
    assert secret not in page.content()


def test_the_browser_asks_before_a_new_secret_is_left_that_nobody_copied(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    press(page, "Issue a new secret")
    page.get_by_label("Reason").fill("Asked by letter")
    press(page, "Issue a new secret")
    page.locator("#client-secret").wait_for()
    asked: list[str] = []

    def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss() if len(asked) == 1 else dialog.accept()

    page.on("dialog", answer)
    page.get_by_role("button", name="Copy the client ID").click()  # not the secret
    press(page, "Go to the system user")
    page.wait_for_timeout(0)
    assert page.locator("#client-secret").is_visible()  # stayed: nothing is lost
    assert asked == ["beforeunload"]
    page.get_by_role("button", name="Copy the client secret").click()
    says(page, "Copied.")
    press(page, "Go to the system user")
    page.wait_for_url("**/change/**")
    assert asked == ["beforeunload"]


FOCUSED = "document.activeElement.name"
NO_PART = ".today summary, #navigation, .inline-action"
A4 = {"width": 794, "height": 1123}  # at 96 dots an inch
CONTROLS = f":is(button, .button, input, select, textarea, {NO_PART}):visible"


def test_a_secret_that_is_searched_for_is_in_no_address_and_not_shown(office: Office) -> None:
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


def test_a_form_has_the_focus_where_the_next_entry_is(office: Office, tmp_path: Path) -> None:
    page = office.page("security officer")
    page.goto("/admin/taxpayers/systemuser/issue_credentials/")
    assert page.evaluate(FOCUSED) == "taxpayer"
    page.keyboard.type("C2581234020")
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
    assert page.locator("#client-secret").count() == 0
    assert page.locator(".page-head .buttons .button:visible").count() == 4  # with More


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
