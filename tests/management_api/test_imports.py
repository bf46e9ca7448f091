"""Many records by one request: all of them or none, each wrong row named, safe to repeat."""

from typing import Any

import pytest

from identity.api.imports.row_bodies import MOST_ROWS, ROW_KINDS
from taxpayers.models import Change, GrantedPermission, Intermediary, SystemUser, Taxpayer
from taxpayers.services import IMPORT_KINDS
from tests.management_api.portal import Portal, assert_ok, assert_problem, errors_of
from tests.support.factories import SUBMIT, IntermediaryFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db
FIRST, SECOND, AGENT = "C2584563222", "C2584563223:202001234567", "C9876543210"
KEY = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'


def send(portal: Portal, kind: str, *rows: Any, **headers: str) -> Any:
    return portal.post(f"/imports/{kind}", {"rows": list(rows)}, **headers)


def registered(new: int, unchanged: int = 0) -> dict[str, int]:
    return {"registered": new, "unchanged": unchanged}


def test_the_kinds_are_those_of_files() -> None:
    assert {kind.name for kind in ROW_KINDS.values()} == set(IMPORT_KINDS)


def test_taxpayers_are_imported_and_again_without_a_change(portal: Portal) -> None:
    rows = [
        {"taxpayer": FIRST, "name": "Aminah"},
        {"taxpayer": SECOND, "name": "Bakar", "is_active": False},
    ]
    answer = send(portal, "taxpayers", *rows)
    assert assert_ok(answer) == registered(2)
    found = Taxpayer.objects.filter(tin__startswith="C258456322").order_by("tin")
    assert [(str(row.identifier), row.name, row.is_active) for row in found] == [
        (FIRST, "Aminah", True),
        (SECOND, "Bakar", False),
    ]
    changes = Change.objects.all()
    assert {(change.action, str(change.task_id), change.by) for change in changes} == {
        ("import_registry", answer["correlationId"], f"{portal.erp.client_id} (client)")
    }
    assert assert_ok(send(portal, "taxpayers", *rows)) == registered(0, 2)
    assert Change.objects.count() == 2


def test_the_other_kinds_are_imported(portal: Portal) -> None:
    for tin in (FIRST, AGENT):
        TaxpayerFactory.create(tin=tin)
    agents = send(portal, "intermediaries", {"taxpayer": AGENT, "active_until": "2037-12-31"})
    assert assert_ok(agents) == registered(1)
    grant = {"taxpayer": FIRST, "intermediary": AGENT, "permissions": [SUBMIT, SUBMIT]}
    assert assert_ok(send(portal, "permissions", grant)) == registered(1)
    assert assert_ok(send(portal, "permissions", grant)) == registered(0, 1)
    user = {"taxpayer": FIRST, "name": "ERP", "scopes": ["InvoicingAPI"], "logins_per_minute": 7}
    assert assert_ok(send(portal, "system-users", user)) == registered(1)
    intermediary = Intermediary.objects.get()
    assert intermediary.active_until is not None
    assert intermediary.active_until.isoformat() == "2037-12-31T15:59:59.999999+00:00"
    assert [code.pk for code in GrantedPermission.objects.get().codes.all()] == [SUBMIT]
    row = SystemUser.objects.get(name="ERP")
    assert (row.logins_per_minute, row.scopes, row.credentials.count()) == (7, "InvoicingAPI", 0)
    actions = Change.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["register_intermediary", "grant_permission", "register_system_user"]


def test_one_wrong_row_and_nothing_is_imported_and_all_wrong_rows_are_named(
    portal: Portal,
) -> None:
    TaxpayerFactory.create(tin=FIRST, name="Other name")
    answer = send(
        portal,
        "taxpayers",
        {"taxpayer": "C1111111111", "name": "Right"},
        {"taxpayer": FIRST, "name": "Aminah"},
        {"taxpayer": "C2222222222", "name": " "},
        {"taxpayer": "C1111111111", "name": "Again"},
    )
    body = assert_problem(answer, 422, "invalid_fields", "3 of 4 rows are bad.")
    assert errors_of(body) == {
        "#/rows/1": f"{FIRST} is already registered under the name Other name.",
        "#/rows/2": "Give a name: it is missing or blank.",
        "#/rows/3": "C1111111111 is already in row 0.",
    }
    assert not Change.objects.exists()
    assert not Taxpayer.objects.filter(tin="C1111111111").exists()


def test_wrong_types_are_named_by_their_pointers(portal: Portal) -> None:
    answer = send(portal, "taxpayers", {"taxpayer": "!", "name": 1, "x": 1}, {"taxpayer": FIRST})
    pointers = set(errors_of(assert_problem(answer, 422, "invalid_fields")))
    assert pointers == {"#/rows/0/taxpayer", "#/rows/0/name", "#/rows/0/x", "#/rows/1/name"}
    assert_problem(send(portal, "taxpayers"), 422, "invalid_fields")
    many = [{"taxpayer": f"IMP{number:07}", "name": "N"} for number in range(MOST_ROWS + 1)]
    assert_problem(send(portal, "taxpayers", *many), 422, "invalid_fields")
    assert assert_ok(send(portal, "taxpayers", *many[1:])) == registered(MOST_ROWS)


def test_what_the_rows_name_must_be_there(portal: Portal) -> None:
    answer = send(portal, "system-users", {"taxpayer": FIRST, "name": "ERP"})
    body = assert_problem(answer, 422, "invalid_fields")
    assert "There is no taxpayer C2584563222" in errors_of(body)["#/rows/0"]


def test_a_repeated_request_gets_the_same_answer(portal: Portal) -> None:
    row = {"taxpayer": FIRST, "name": "Aminah"}
    first = send(portal, "taxpayers", row, Idempotency_Key=KEY)
    again = send(portal, "taxpayers", row, Idempotency_Key=KEY)
    assert assert_ok(first) == assert_ok(again) == registered(1)
    assert again["Idempotent-Replayed"] == "true"
    other = send(portal, "taxpayers", row, row, Idempotency_Key=KEY)
    assert_problem(other, 422, "key_used_before")


def test_an_import_may_be_larger_than_other_bodies_and_not_without_end(portal: Portal) -> None:
    name = "x" * 200
    rows = [{"taxpayer": f"IMP{number:07}", "name": name} for number in range(MOST_ROWS)]
    assert assert_ok(send(portal, "taxpayers", *rows)) == registered(MOST_ROWS)
    answer = portal.post("/imports/taxpayers", b" " * 600_000)
    assert_problem(answer, 413, "content_too_large", "at most 524288 bytes")


def test_permissions_of_an_intermediary_end_when_they_are_said_to(portal: Portal) -> None:
    agent = IntermediaryFactory.create(taxpayer__tin=AGENT)
    TaxpayerFactory.create(tin=FIRST)
    row = {
        "taxpayer": FIRST,
        "intermediary": str(agent.taxpayer.identifier),
        "permissions": [SUBMIT],
        "valid_from": "2036-01-01",
        "valid_until": "2036-12-31",
    }
    assert assert_ok(send(portal, "permissions", row)) == registered(1)
    granted = GrantedPermission.objects.get()
    assert granted.valid_from.isoformat() == "2035-12-31T16:00:00+00:00"
    assert granted.valid_until is not None
    assert granted.valid_until.isoformat() == "2036-12-31T15:59:59.999999+00:00"
