"""Taxpayers: register, read, list, rename, deactivate and activate."""

from typing import Any

import pytest

from taxpayers.models import Change, Taxpayer
from tests.management_api.portal import (
    BASE,
    Portal,
    assert_ok,
    assert_problem,
    errors_of,
)
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
    assert (change.by, change.action) == (
        f"{portal.erp.client_id} (client)",
        "register_taxpayer",
    )
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


@pytest.mark.parametrize(
    "identifier",
    ["C9999999999", "C2584563222:12345", "%00", "x", "C2584563222%3A", "%C3%A9" * 9, "a" * 5000],
)
def test_a_taxpayer_that_is_not_there_is_a_404(portal: Portal, identifier: str) -> None:
    for answer in (
        portal.get(f"/taxpayers/{identifier}"),
        portal.post(f"/taxpayers/{identifier}/deactivate", {"reason": "x"}, If_Match="*"),
    ):
        assert_problem(answer, 404, "not_found", "There is no such taxpayer.")


def names(portal: Portal, query: str) -> list[str]:
    return [item["taxpayer"] for item in assert_ok(portal.get(f"/taxpayers{query}"))["items"]]


def test_the_list_and_its_filters(portal: Portal) -> None:
    TaxpayerFactory.create(tin="C1000000002", name="Ali Trading")
    TaxpayerFactory.create(tin="C1000000001", rob="12345", name="Bakar Trading")
    TaxpayerFactory.create(tin="C1000000001", name="Bakar & Sons", is_active=False)
    own = portal.erp.tin
    assert sorted(names(portal, "")) == names(portal, "")
    assert set(names(portal, "")) == {"C1000000001", "C1000000001:12345", "C1000000002", own}
    assert names(portal, "?tin=c1000000001") == ["C1000000001", "C1000000001:12345"]
    assert names(portal, "?name=trading") == ["C1000000001:12345", "C1000000002"]
    assert names(portal, "?name=trad+bak") == ["C1000000001:12345"]
    assert names(portal, "?state=inactive") == ["C1000000001"]
    assert "C1000000001" not in names(portal, "?state=active&limit=&cursor=")
    assert names(portal, "?name=nobody") == []


BAD_QUERIES: list[tuple[str, dict[str, str]]] = [
    ("?limit=0", {"limit": "greater than or equal to 1"}),
    ("?limit=501&state=x", {"limit": "less than or equal to 500", "state": "not a valid choice"}),
    ("?page=2", {"page": "There is no such field here. Choose from: cursor, limit"}),
    ("?tin=1&tin=2", {"tin": "Send it once."}),
    ("?cursor=abc", {"cursor": "Send the next_cursor of the page before"}),
    ("?name=%00", {"name": "Null characters are not allowed."}),
    (f"?limit={'9' * 3000}", {"limit": "String value too large."}),
]


@pytest.mark.parametrize(("query", "errors"), BAD_QUERIES, ids=lambda value: str(value)[:30])
def test_a_parameter_that_is_wrong_is_named(
    portal: Portal, query: str, errors: dict[str, str]
) -> None:
    body = assert_problem(portal.get(f"/taxpayers{query}"), 400, "malformed_request")
    found = errors_of(body)
    assert found.keys() == errors.keys()
    assert all(says in found[name] for name, says in errors.items())


@pytest.mark.parametrize("query", ["?a=%zz", "?a=%ff", "?" + "&".join(["a=1"] * 101)])
def test_a_query_that_cannot_be_read_is_refused(portal: Portal, query: str) -> None:
    answer = portal.get(f"/taxpayers{query}")
    assert_problem(answer, 400, "malformed_request", "The request is malformed: the query string")


def test_pages_have_each_record_once_whatever_changes_between_them(portal: Portal) -> None:
    rows = [
        TaxpayerFactory.create(tin=f"D100000000{n}", rob="" if n % 2 else "12345") for n in range(9)
    ]
    whole = names(portal, "")
    assert len(whole) == 10
    for limit in (1, 3, 9, 10):
        collected: list[str] = []
        cursor = ""
        while True:
            page = body_of(portal.get(f"/taxpayers?limit={limit}&cursor={cursor}"))
            assert len(page["items"]) <= limit
            collected += [item["taxpayer"] for item in page["items"]]
            assert len(collected) <= len(whole)
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert collected == whole
    page = body_of(portal.get("/taxpayers?limit=4"))
    last = page["items"][-1]["taxpayer"]
    row = next(row for row in rows if str(row.identifier) == last)
    row.delete()
    TaxpayerFactory.create(tin="A0000000000")
    rest = names(portal, f"?cursor={page['next_cursor']}")
    assert rest == whole[whole.index(last) + 1 :]


def test_a_cursor_of_another_list_is_refused(portal: Portal) -> None:
    TaxpayerFactory.create_batch(2)
    cursor: Any = body_of(portal.get("/taxpayers?limit=1"))["next_cursor"]
    answer = portal.get(f"/system-users?cursor={cursor}")
    assert "cursor" in errors_of(assert_problem(answer, 400, "malformed_request"))


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
