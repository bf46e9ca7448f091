"""The old secret is revoked when the new one is in use: what the page shows (contract 3)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from identity.demo.sample_logins import set_last_used
from taxpayers.models import Credential
from tests.browser.support.clicks import CountedClicks, find, says
from tests.browser.support.office import Office

TIN = "C7776660010"


@pytest.fixture
def client(office: Office) -> dict[str, str]:
    """An ERP system with two secrets: the old one is not used any more, the new one is."""
    manage = office.service.manage
    manage("register_taxpayer", TIN, "--name", "Kilang Getah Utara Sdn Bhd")
    old = manage("issue_credentials", TIN, "--name", f"Getah ERP {uuid4()}")
    new = manage("rotate_secret", old["client_id"])
    for secret in (old, new):
        assert office.log_in(old["client_id"], secret["client_secret"]).status_code == 200
    office.service.run(lambda: _age(old["secret_hint"]))
    return {"id": old["client_id"], "old": old["client_secret"], "new": new["client_secret"]}


def _age(hint: str) -> None:
    """The ERP system was moved two days ago; a login updates the last use once a minute at most."""
    before = timezone.now() - timedelta(days=2)
    Credential.objects.filter(hint=hint).update(created_at=before)
    set_last_used(Credential.objects.get(hint=hint), before)


def test_the_old_secret_is_safe_to_revoke_once_the_new_one_is_in_use_and_ends_on_a_day_in_2_clicks(
    office: Office, client: dict[str, str]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["id"])
    assert "Safe to revoke" in row_of(page, client["old"]).inner_text()
    assert "Safe to revoke" not in row_of(page, client["new"]).inner_text()
    last_day = datetime.now(UTC).date() + timedelta(days=30)
    clicks = CountedClicks(page)
    clicks.press(f"Set last day …{client['old'][-4:]}")
    page.get_by_label("Last day").fill(f"{last_day}")
    page.get_by_label("Reason").fill("The ERP system has moved")
    clicks.press("Set last day")
    says(page, "is set.")
    assert clicks.count == 2
    expires = row_of(page, client["old"]).locator("td[data-label=Expires]").inner_text()
    assert expires == f"{last_day.day} {last_day:%b %Y}, 23:59"
    for secret in (client["old"], client["new"]):  # it was not revoked
        assert office.log_in(client["id"], secret).status_code == 200


def test_an_old_secret_is_revoked_in_2_clicks_and_staff_see_why_its_login_is_refused(
    office: Office, client: dict[str, str]
) -> None:
    page = office.page("security officer")
    find(page, "taxpayers/systemuser", client["id"])
    clicks = CountedClicks(page)
    clicks.press(f"Revoke …{client['old'][-4:]}")
    says(page, f"Revoke …{client['old'][-4:]}")
    says(page, f"…{client['new'][-4:]} until")  # what remains valid
    page.get_by_label("Reason").fill("Nobody needs it any more")
    clicks.press("Revoke")
    says(page, "is revoked.")
    assert clicks.count == 2
    ended = row_of(page, client["old"])
    assert "Revoked" in ended.locator("td[data-label=State]").inner_text()
    assert "Revoked" in ended.locator("td[data-label=Expires]").inner_text()  # not a day to come
    assert "Safe to revoke" not in ended.inner_text()
    assert ended.get_by_role("link").count() == 0
    assert row_of(page, client["new"]).get_by_role("link", name="Revoke").count() == 1

    refused = office.log_in(client["id"], client["old"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_client")
    assert "was revoked on" in refused.json()["error_description"]
    assert office.log_in(client["id"], client["new"]).status_code == 200
    find(page, "tokens/loginevent", refused.headers["correlationId"])
    assert "Is the secret not revoked?" in page.locator(".check-failed").inner_text()
    page.goto(f"/admin/tokens/loginevent/?reason=secret_revoked&q={client['id']}")
    assert page.locator("#result_list tbody tr").count() == 1


def row_of(page: Any, secret: str) -> Any:
    """The row of that secret on the page of the system user."""
    return page.locator("#secrets tbody tr", has_text=f"…{secret[-4:]}")
