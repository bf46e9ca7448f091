"""Many records by one request: all of them or none, each wrong row named, safe to repeat."""

from typing import Any

import pytest

from identity.api.imports.view import MOST_ROWS
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer
from tests.management_api.portal import Portal, assert_ok, assert_problem, errors_of
from tests.support.factories import SUBMIT, TaxpayerFactory

pytestmark = pytest.mark.django_db
FIRST, SECOND, AGENT = "C2584563222", "C2584563223:202001234567", "C9876543210"


def send(portal: Portal, kind: str, *rows: Any, **headers: str) -> Any:
    return portal.post(f"/imports/{kind}", {"rows": list(rows)}, **headers)


def registered(new: int, unchanged: int = 0) -> dict[str, int]:
    return {"registered": new, "unchanged": unchanged}


def imported(portal: Portal, kind: str, row: dict[str, Any]) -> Any:
    """Its answer, after a second time that changes nothing."""
    answer = send(portal, kind, row)
    assert assert_ok(answer) == registered(1)
    assert assert_ok(send(portal, kind, row)) == registered(0, 1)
    return answer


def test_each_kind_is_imported_and_again_without_a_change(portal: Portal) -> None:
    row: dict[str, Any] = {"taxpayer": SECOND, "name": "Bakar", "is_active": False}
    answer = imported(portal, "taxpayers", row)
    found = Taxpayer.objects.get(tin=SECOND.partition(":")[0])
    assert (str(found.identifier), found.name, found.is_active) == (SECOND, "Bakar", False)
    change = Change.objects.get()
    assert (change.action, str(change.task_id)) == ("import_registry", answer["correlationId"])
    assert change.by == f"{portal.erp.client_id} (client)"
    for tin in (FIRST, AGENT):
        TaxpayerFactory.create(tin=tin)
    imported(portal, "intermediaries", {"taxpayer": AGENT, "active_until": "2037-12-31"})
    assert str(Intermediary.objects.get().active_until) == "2037-12-31 15:59:59.999999+00:00"
    dates = {"valid_from": "2036-01-01", "valid_until": "2036-12-31"}
    row = {"taxpayer": FIRST, "intermediary": AGENT, "permissions": [SUBMIT, SUBMIT], **dates}
    imported(portal, "permissions", row)
    granted = GrantedPermission.objects.get()
    assert [code.pk for code in granted.codes.all()] == [SUBMIT]
    assert str(granted.valid_from) == "2035-12-31 16:00:00+00:00"
    assert str(granted.valid_until) == "2036-12-31 15:59:59.999999+00:00"
    row = {"taxpayer": FIRST, "name": "ERP", "scopes": ["InvoicingAPI"], "logins_per_minute": 7}
    imported(portal, "system-users", row)
    user = SystemUser.objects.get(name="ERP")
    assert (user.logins_per_minute, user.scopes, user.credentials.count()) == (7, "InvoicingAPI", 0)
    actions = Change.objects.order_by("pk").values_list("action", flat=True)[1:]
    assert list(actions) == ["register_intermediary", "grant_permission", "register_system_user"]


def test_one_wrong_row_and_nothing_is_imported_and_all_wrong_rows_are_named(portal: Portal) -> None:
    TaxpayerFactory.create(tin=FIRST, name="Other name")
    answer = send(
        portal,
        "taxpayers",
        {"taxpayer": "C1111111111", "name": "Right"},
        {"taxpayer": FIRST, "name": "Aminah"},
        {"taxpayer": "C2222222222", "name": " "},
        {"taxpayer": "C1111111111", "name": "Again"},
        {"taxpayer": "!", "name": 1},
    )
    body = assert_problem(answer, 422, "invalid_fields", "4 of 5 rows are bad.")
    assert (errors := errors_of(body)) == {
        "#/rows/1": f"{FIRST} is already registered under the name Other name.",
        "#/rows/2/name": "This field may not be blank.",
        "#/rows/3": "C1111111111 is already in row 0.",
        "#/rows/4/taxpayer": errors["#/rows/4/taxpayer"],
        "#/rows/4/name": "Not a valid string.",
    }
    assert not Change.objects.exists()
    assert not Taxpayer.objects.filter(tin="C1111111111").exists()
    broken: list[Any] = [[0], [{}, "x"], {}, "x", [], None]
    for rows in broken:
        assert_problem(portal.post("/imports/taxpayers", {"rows": rows}), 422, "invalid_fields")
    answer = send(portal, "system-users", {"taxpayer": "C7777777777", "name": "ERP"})
    errors = errors_of(assert_problem(answer, 422, "invalid_fields"))
    assert "There is no taxpayer C7777777777" in errors["#/rows/0/taxpayer"]


def test_an_import_may_be_larger_than_other_bodies_and_not_without_end(portal: Portal) -> None:
    name = "x" * 200
    rows = [{"taxpayer": f"IMP{number:07}", "name": name} for number in range(MOST_ROWS + 1)]
    assert_problem(send(portal, "taxpayers", *rows), 422, "invalid_fields")
    assert assert_ok(send(portal, "taxpayers", *rows[1:])) == registered(MOST_ROWS)
    answer = portal.post("/imports/taxpayers", b" " * 600_000)
    assert_problem(answer, 413, "content_too_large", "at most 524288 bytes")
