"""An officer narrows what a stolen secret or token is worth: certificates, bindings, limits."""

from typing import Any
from uuid import uuid4

import pytest

from tests.browser.support.clicks import CountedClicks, find, says
from tests.browser.support.office import Office
from tests.certificates.certificate_erp import certificate

TIN = "C7773330010"


@pytest.fixture
def client(office: Office) -> dict[str, Any]:
    """The credentials of a new ERP system of an intermediary."""
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", "Ejen Cukai Utara Plt")
    manage("register_intermediary", TIN)
    issued: dict[str, Any] = manage("issue_credentials", TIN, "--name", f"Ejen {uuid4()}")
    return issued


def log_in(office: Office, client: dict[str, Any]) -> Any:
    return office.log_in(client["client_id"], client["client_secret"])


def test_a_client_changes_to_a_certificate_in_2_clicks_and_replaces_it_in_4(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks = CountedClicks(page)
    clicks.press("Change to a certificate")
    page.get_by_label("Certificate or name").fill(certificate("CN=may,C=MY").pem)
    page.get_by_label("Reason").fill("Asked for by the operator")
    clicks.press("Log in with a certificate")
    says(page, "logs in with a certificate now.")
    says(page, "tls_client_auth_subject_dn:CN=may,C=MY")
    says(page, "The client's TLS certificate")
    assert clicks.count == 2
    assert log_in(office, client).status_code == 400
    clicks.press("Register a new certificate")
    page.get_by_label("Certificate or name").fill(certificate("CN=june,C=MY").pem)
    clicks.press("Register a new certificate")
    says(page, "CN=june,C=MY is registered.")
    old = page.locator("#secrets tbody tr", has_text="CN=may")
    hint = old.locator("code").first.inner_text()
    clicks.press(f"Revoke {hint}")
    page.get_by_label("Reason").fill("The operator has changed over")
    clicks.press("Revoke")
    says(page, f"Certificate {hint} is revoked.")
    says(page, "Revoked a certificate")
    assert clicks.count == 6


def test_networks_are_set_in_2_clicks_and_corrected_from_the_refused_login_in_3(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks = CountedClicks(page)
    clicks.press(f"Set networks …{client['secret_hint']}")
    page.get_by_label("Allowed networks").fill("203.0.113.0/24")
    page.get_by_label("Reason").fill("The office of the intermediary")
    clicks.press("Set the networks from which it may be used")
    says(page, "may be used from 203.0.113.0/24 only.")
    assert clicks.count == 2
    refused = log_in(office, client)
    assert refused.status_code == 400
    find(page, "tokens/loginevent", refused.headers["correlationId"])  # 1: opens the login
    says(page, "Not from an allowed network")
    clicks.press("Set the networks from which it may be used")
    page.get_by_label("Allowed networks").fill("203.0.113.0/24 127.0.0.1")
    page.get_by_label("Reason").fill("They work from here as well")
    clicks.press("Set the networks from which it may be used")
    says(page, "may be used from 127.0.0.1/32, 203.0.113.0/24 only.")
    assert clicks.count == 4
    assert log_in(office, client).status_code == 200


def test_what_it_may_do_for_others_is_limited_in_3_clicks(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks = CountedClicks(page)
    clicks.press("Limit what it may do for others")
    page.get_by_label("documents:view").check()
    page.get_by_label("Taxpayers that it may act for").fill("C2581234010")
    page.get_by_label("Reason").fill("One branch")
    clicks.press("Limit what it may do for others")
    says(page, "It may act for 1 taxpayer only: C2581234010.")
    assert clicks.count + 1 == 3  # and the box
    assert "Active" in page.locator(".page-title").inner_text()
    assert log_in(office, client).status_code == 400


def test_tokens_are_bound_in_2_clicks_and_unbound_from_the_refused_login_in_3(
    office: Office, client: dict[str, Any]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["client_id"])
    clicks = CountedClicks(page)
    clicks.press("Bind its tokens")
    page.get_by_label("Tokens bound to").select_option(label="A key of the client (DPoP)")
    page.get_by_label("Reason").fill("Asked for by the operator")
    clicks.press("Bind its tokens to a key or a certificate")
    says(page, "are bound to: A key of the client (DPoP).")
    assert clicks.count == 2
    refused = log_in(office, client)
    find(page, "tokens/loginevent", refused.headers["correlationId"])  # 1: opens the login
    says(page, "The same login would be refused again now.")
    clicks.press("Bind its tokens to a key or a certificate")
    page.get_by_label("Tokens bound to").select_option("")
    page.get_by_label("Reason").fill("Its ERP system cannot do it yet")
    clicks.press("Bind its tokens to a key or a certificate")
    says(page, "are bound to: Nothing")
    assert clicks.count == 4
    assert log_in(office, client).status_code == 200
