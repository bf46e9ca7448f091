"""Taxpayers: register, read, rename, and their history."""

import pytest

from taxpayers.models import Change, Taxpayer
from tests.management_api.portal import BASE, Portal, assert_ok
from tests.support.answers import body_of
from tests.support.factories import TaxpayerFactory

pytestmark = pytest.mark.django_db
PATH = "/taxpayers/C2584563222"


@pytest.fixture
def taxpayer() -> Taxpayer:
    return TaxpayerFactory.create(tin="C2584563222", name="Kedai Runcit Aminah")


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
    change = Change.objects.latest("pk")
    assert (change.by, change.action) == (f"{portal.erp.client_id} (client)", "register_taxpayer")
    assert str(change.task_id) == answer["correlationId"]
    assert change.address == "127.0.0.1"


def test_the_history_of_a_taxpayer(portal: Portal, taxpayer: Taxpayer) -> None:
    for name in ("First", "Second"):
        body = {"name": name, "reason": f"because {name}"}
        changed = portal.patch(PATH, body, If_Match=portal.etag(PATH))
        assert assert_ok(changed)["name"] == name
        assert changed["ETag"] == portal.etag(PATH)
    answer = portal.get(f"{PATH}/history")
    second, first = assert_ok(answer)["items"]
    assert (first["after"], second["after"]) == ({"name": "First"}, {"name": "Second"})
    assert (second["before"], second["reason"]) == ({"name": "First"}, "because Second")
    assert second["by"] == f"{portal.erp.client_id} (client)"
    newest = body_of(portal.get(f"{PATH}/history?limit=1"))
    assert newest["items"] == [second]
    older = body_of(portal.get(f"{PATH}/history?cursor={newest['next_cursor']}"))
    assert older == {"items": [first], "next_cursor": None}
    since = body_of(portal.get(f"{PATH}/history?since={second['at']}"))
    assert since["items"] == [second]
    assert body_of(portal.get(f"/taxpayers/{portal.erp.tin}/history"))["items"] == []
