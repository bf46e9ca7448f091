"""Taxpayers, permissions and the explanation of a login, each in its whole answer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from taxpayers.models import Change, GrantedPermission, Taxpayer
from tests.management_api.portal import BASE, Portal, assert_ok, assert_problem, text_of
from tests.support.answers import body_of
from tests.support.erp import new_erp
from tests.support.factories import (
    SUBMIT,
    GrantedPermissionFactory,
    IntermediaryFactory,
    TaxpayerFactory,
)

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
AGENT, CLIENT = "C9876543210", "C2584563222"


def test_a_taxpayer_is_registered(portal: Portal) -> None:
    new = {"taxpayer": "c2584563222:202001234567", "name": "Kedai Runcit Aminah"}
    answer = portal.post("/taxpayers", new)
    record = assert_ok(answer, 201)
    row = Taxpayer.objects.get(tin="C2584563222")
    assert record == {
        "taxpayer": "C2584563222:202001234567",
        "tin": "C2584563222",
        "rob": "202001234567",
        "name": "Kedai Runcit Aminah",
        "is_active": True,
        "registered_at": text_of(row.created_at),
    }
    assert answer["Location"] == f"{BASE}/taxpayers/C2584563222:202001234567"
    read = portal.get("/taxpayers/C2584563222:202001234567")
    assert assert_ok(read) == record
    assert read["ETag"] == answer["ETag"]
    change = Change.objects.latest("pk")
    assert (change.by, change.action) == (f"{portal.erp.client_id} (client)", "register_taxpayer")
    assert str(change.task_id) == answer["correlationId"]
    assert change.address == "127.0.0.1"


def test_the_history_of_a_taxpayer_has_pages(portal: Portal) -> None:
    path = f"/taxpayers/{TaxpayerFactory.create(tin=CLIENT).tin}"
    for name in ("First", "Second"):
        body = {"name": name, "reason": f"because {name}"}
        changed = portal.patch(path, body, If_Match=portal.etag(path))
        assert assert_ok(changed)["name"] == name
        assert changed["ETag"] == portal.etag(path)
    answer = portal.get(f"{path}/history")
    second, first = assert_ok(answer)["items"]
    assert (first["after"], second["after"]) == ({"name": "First"}, {"name": "Second"})
    assert (second["before"], second["reason"]) == ({"name": "First"}, "because Second")
    assert second["by"] == f"{portal.erp.client_id} (client)"
    newest = body_of(portal.get(f"{path}/history?limit=1"))
    assert newest["items"] == [second]
    older = body_of(portal.get(f"{path}/history?cursor={newest['next_cursor']}"))
    assert older == {"items": [first], "next_cursor": None}
    since = body_of(portal.get(f"{path}/history?since={second['at']}"))
    assert since["items"] == [second]
    assert body_of(portal.get(f"/taxpayers/{portal.erp.tin}/history"))["items"] == []


def test_a_permission_is_granted_extended_shortened_and_revoked(portal: Portal) -> None:
    TaxpayerFactory.create(tin=CLIENT)
    IntermediaryFactory.create(taxpayer__tin=AGENT)
    body = {
        "taxpayer": CLIENT,
        "intermediary": AGENT,
        "permissions": [SUBMIT],
        "valid_until": "2036-12-31",
    }
    answer = portal.post("/permissions", body)
    record = assert_ok(answer, 201)
    row = GrantedPermission.objects.get()
    assert record == {
        "id": row.pk,
        "taxpayer": CLIENT,
        "intermediary": AGENT,
        "permissions": [SUBMIT],
        "state": "in_force",
        "valid_from": text_of(row.valid_from),
        "valid_until": "2036-12-31T15:59:59.999999Z",
        "revoked_at": None,
        "granted_at": text_of(row.created_at),
        "evidence": {"kind": "entered_before"},
    }
    path = f"/permissions/{row.pk}"
    end = {"valid_until": "2037-12-31", "reason": "x"}
    extended = portal.post(f"{path}/extend", end, If_Match=answer["ETag"])
    assert assert_ok(extended)["valid_until"] == "2037-12-31T15:59:59.999999Z"
    again = portal.post(f"{path}/extend", end, If_Match=extended["ETag"])
    assert_problem(again, 422, "change_refused", "is not later")
    end = {"valid_until": "2035-12-31", "reason": "x"}
    earlier = portal.post(f"{path}/end-earlier", end, If_Match=extended["ETag"])
    assert assert_ok(earlier)["valid_until"] == "2035-12-31T15:59:59.999999Z"
    revoked = portal.post(f"{path}/revoke", {"reason": "x"}, If_Match=earlier["ETag"])
    assert assert_ok(revoked)["state"] == "revoked"
    actions = [change["action"] for change in body_of(portal.get(f"{path}/history"))["items"]]
    assert actions == ["revoke_permission", *["extend_permission"] * 2, "grant_permission"]


@pytest.mark.parametrize(
    ("moments", "state"),
    [
        ({}, "in_force"),
        ({"valid_from": DAY}, "not_yet_valid"),
        ({"valid_from": -2 * DAY, "valid_until": -DAY}, "expired"),
        ({"revoked_at": -DAY}, "revoked"),
    ],
)
def test_a_permission_has_a_state(portal: Portal, moments: dict[str, Any], state: str) -> None:
    fields = {name: datetime.now(UTC) + moment for name, moment in moments.items()}
    row = GrantedPermissionFactory.create(**fields)
    assert assert_ok(portal.get(f"/permissions/{row.pk}"))["state"] == state


def test_a_login_is_explained(portal: Portal) -> None:
    agent = new_erp(taxpayer=IntermediaryFactory.create(taxpayer__tin=AGENT).taxpayer)
    answer = agent.login(on_behalf_of=CLIENT)
    reference = answer["correlationId"]
    body = assert_ok(portal.get(f"/logins/{reference}"))
    assert body["login"]["reference"] == reference
    assert body["login"]["outcome"] == "no_permission"
    assert body["login"]["is_authenticated"] is True
    assert (body["login"]["taxpayer"], body["login"]["intermediary"]) == (CLIENT, AGENT)
    assert body["help"] == "http://127.0.0.1:8000/errors/no_permission"
    assert "the login was refused" in body["explanation"]
    states = {check["state"] for check in body["checks"]}
    assert {"passed", "failed"} <= states
    assert agent.client_secret not in str(body)
