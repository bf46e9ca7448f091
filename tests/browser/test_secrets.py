"""An officer's tasks with secrets: hand one over, see what uses it, let a client in again."""

import re
from typing import Any
from uuid import uuid4

import pytest

from tests.browser.support.accessibility import violations
from tests.browser.support.clicks import CountedClicks, find, press, says
from tests.browser.support.office import Office
from tests.client_auth.key_erp import jwks, new_pair

TIN, TAXPAYER = "C7774440010", "Pasar Raya Timur Sdn Bhd"


@pytest.fixture
def client(office: Office) -> dict[str, Any]:
    """The credentials of a new ERP system, which logs in with them."""
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", TAXPAYER)
    issued: dict[str, Any] = manage("issue_credentials", TIN, "--name", f"Till {uuid4()}")
    assert office.log_in(issued["client_id"], issued["client_secret"]).status_code == 200
    return issued


def test_a_new_secret_is_handed_over_whole_in_three_clicks(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks = CountedClicks(page)
    clicks.press("Issue a new secret")
    clicks.press("Issue a new secret")
    secret = page.locator("#client-secret").inner_text()
    clicks.press("Copy all")
    says(page, "Copied.")
    assert clicks.count == 3
    copied = page.evaluate("navigator.clipboard.readText()")
    for part in (TAXPAYER, TIN, client["client_id"], secret, f"{office.url}/connect/token"):
        assert part in copied
    assert re.search(rf"^curl .* -d client_secret={secret}$", copied, re.MULTILINE)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert violations(page) == []
    page.emulate_media(color_scheme="light", media="print")
    assert page.locator(".sheet").get_by_text(secret, exact=True).is_visible()
    assert not page.get_by_role("button", name="Copy all").is_visible()
    assert not page.locator(".page-head h1").is_visible()
    page.emulate_media(media="screen")


def test_the_browser_asks_before_a_new_secret_is_left_that_nobody_copied(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    press(page, "Issue a new secret")
    press(page, "Issue a new secret")
    page.locator("#client-secret").wait_for()
    asked: list[str] = []

    def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss() if len(asked) == 1 else dialog.accept()

    page.on("dialog", answer)
    try:
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
    finally:
        page.remove_listener("dialog", answer)


def test_which_secret_is_in_use_is_answered_without_a_click(
    office: Office, client: dict[str, Any]
) -> None:
    new = office.service.manage("rotate_secret", client["client_id"])
    page = office.page("viewer")
    find(page, "taxpayers/systemuser", client["client_id"])
    used = page.locator(".secret-use", has_text=f"…{client['secret_hint']}")
    assert "Keep it for now: it is in use" in used.inner_text()
    assert "1 login with a token, on 1 of the last 30 days." in used.inner_text()
    assert "127.0.0.1" in used.inner_text()
    assert used.locator("svg rect title").count() == 1
    idle = page.locator(".secret-use", has_text=f"…{new['secret_hint']}")
    assert "Not used yet." in idle.inner_text()


def test_a_client_whose_secret_leaked_is_let_in_again_with_a_new_one_in_seven_clicks(
    office: Office, client: dict[str, Any]
) -> None:
    manage = office.service.manage
    manage("block_system_user", client["client_id"], "--reason", "Secret seen in a ticket")
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks = CountedClicks(page)
    clicks.press("Unblock")
    says(page, "Reason: Secret seen in a ticket")
    says(page, "What was valid before the block works again.")
    clicks.press(f"Revoke …{client['secret_hint']}")
    says(page, "It is the last one that is valid.")
    page.get_by_label("Last characters").fill(client["secret_hint"])
    page.get_by_label("Reason").fill("Leaked")
    clicks.press("Revoke")
    says(page, "is revoked.")
    says(page, "No valid secret")
    clicks.press("Issue a new secret")
    clicks.press("Issue a new secret")
    secret = page.locator("#client-secret").inner_text()
    page.get_by_role("button", name="Copy the client secret").click()
    says(page, "Copied.")
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks.press("Unblock")
    says(page, "Nothing from before the block is valid")
    page.get_by_label("Reason").fill("The leaked secret is revoked")
    clicks.press("Unblock the system user")
    says(page, "is unblocked.")
    assert clicks.count == 7
    assert office.log_in(client["client_id"], client["client_secret"]).status_code == 400
    assert office.log_in(client["client_id"], secret).status_code == 200


def test_a_client_changes_to_a_private_key_in_2_clicks_and_replaces_it_in_4(
    office: Office, client: dict[str, Any]
) -> None:
    old, new = new_pair(kid="key-of-may"), new_pair(kid="key-of-june")
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks = CountedClicks(page)
    clicks.press("Change to a private key")
    page.get_by_label("Public key").fill(jwks(old))
    page.get_by_label("Reason").fill("Asked for by the operator")
    clicks.press("Log in with a private key")
    says(page, "logs in with a private key now.")
    assert clicks.count == 2
    assert office.log_in(client["client_id"], client["client_secret"]).status_code == 400
    clicks.press("Register a new key")
    page.get_by_label("Public key").fill(jwks(new))
    clicks.press("Register a new key")
    says(page, "The key key-of-june is registered.")
    clicks.press("Revoke …-may")
    says(page, "…june until")  # what remains valid
    page.get_by_label("Reason").fill("The operator has changed over")
    clicks.press("Revoke")
    says(page, "…-may is revoked.")
    assert clicks.count == 6


def test_a_protected_api_is_registered_and_its_secret_handed_over_in_three_clicks(
    office: Office,
) -> None:
    page = office.page("security officer")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/admin/tokens/protectedapi/")
    clicks = CountedClicks(page)
    clicks.press("Register a protected API")
    name = f"Archive {uuid4()}"
    page.get_by_label("Name of the API").fill(name)
    page.get_by_label("Reason").fill("contract 7")
    clicks.press("Register a protected API")
    secret = page.locator("#client-secret").inner_text()
    clicks.press("Copy all")
    says(page, "Copied.")
    assert clicks.count == 3
    copied = page.evaluate("navigator.clipboard.readText()")
    for part in (name, "InvoicingAPI", secret, f"curl {office.url}/connect/introspect"):
        assert part in copied
    assert violations(page) == []
    page.get_by_role("link", name="Go to the protected API").click()
    says(page, name)
