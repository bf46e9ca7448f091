"""Taxpayers: register, read, rename, and their history."""

import pytest

from taxpayers.models import Change, Taxpayer
from tests.management_api.portal import BASE, Portal, assert_ok, assert_problem
from tests.support.answers import body_of
from tests.support.factories import TaxpayerFactory

pytestmark = pytest.mark.django_db
PATH = "/taxpayers/C2584563222"


@pytest.fixture
def taxpayer() -> Taxpayer:
    return TaxpayerFactory.create(tin="C2584563222", name="Kedai Runcit Aminah")


def last_change() -> Change:
    return Change.objects.latest("pk")


def test_register(portal: Portal) -> None:
    body = {"taxpayer": "c2584563222:202001234567", "name": "Kedai Runcit Aminah"}
    answer = portal.post("/taxpayers", body)
    record = assert_ok(answer, 201)
    row = Taxpayer.objects.get(tin="C2584563222")
    assert record == {
        "taxpayer": "C2584563222:202001234567",
        "tin": "C2584563222",
        "rob": "202001234567",
        "name": "Kedai Runcit Aminah",
        "is_active": True,
        "registered_at": row.created_at.isoformat().replace("+00:00", "Z"),
    }
    assert answer["Location"] == f"{BASE}/taxpayers/C2584563222:202001234567"
    read = portal.get("/taxpayers/C2584563222:202001234567")
    assert assert_ok(read) == record
    assert read["ETag"] == answer["ETag"]
    change = last_change()
    assert (change.by, change.action) == (f"{portal.erp.client_id} (client)", "register_taxpayer")
    assert str(change.task_id) == answer["correlationId"]
    assert change.address == "127.0.0.1"


def test_to_register_again_is_no_change(portal: Portal, taxpayer: Taxpayer) -> None:
    answer = portal.post("/taxpayers", {"taxpayer": taxpayer.tin, "name": taxpayer.name})
    assert assert_ok(answer)["name"] == taxpayer.name
    assert not Change.objects.exists()


def test_what_a_service_refuses_is_answered_in_its_words(
    portal: Portal, taxpayer: Taxpayer
) -> None:
    answer = portal.post("/taxpayers", {"taxpayer": taxpayer.tin, "name": "Another"})
    says = (
        "C2584563222 is already registered under the name Kedai Runcit Aminah. Check the"
        " identifier, or rename the taxpayer."
    )
    assert_problem(answer, 422, "change_refused", says)


def test_rename(portal: Portal, taxpayer: Taxpayer) -> None:
    body = {"name": "Aminah Trading", "reason": "merger"}
    answer = portal.patch(PATH, body, If_Match=portal.etag(PATH))
    assert assert_ok(answer)["name"] == "Aminah Trading"
    assert answer["ETag"] == portal.etag(PATH)
    change = last_change()
    assert (change.action, change.reason) == ("rename_taxpayer", "merger")
    assert (change.before, change.after) == (
        {"name": "Kedai Runcit Aminah"},
        {"name": "Aminah Trading"},
    )


def test_the_history_of_a_taxpayer(portal: Portal, taxpayer: Taxpayer) -> None:
    for name in ("First", "Second"):
        portal.patch(PATH, {"name": name, "reason": f"because {name}"}, If_Match="*")
    answer = portal.get(f"{PATH}/history")
    second, first = assert_ok(answer)["items"]
    assert (first["after"], second["after"]) == ({"name": "First"}, {"name": "Second"})
    assert second["reason"] == "because Second"
    assert second["by"] == f"{portal.erp.client_id} (client)"
    newest = body_of(portal.get(f"{PATH}/history?limit=1"))
    assert newest["items"] == [second]
    older = body_of(portal.get(f"{PATH}/history?cursor={newest['next_cursor']}"))
    assert older == {"items": [first], "next_cursor": None}
    since = body_of(portal.get(f"{PATH}/history?since={second['at']}"))
    assert since["items"] == [second]
    assert body_of(portal.get(f"/taxpayers/{portal.erp.tin}/history"))["items"] == []
