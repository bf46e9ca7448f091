"""Each door of each grant, change and end of a permission: the evidence that it stores."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from taxpayers.evidence import Evidence, EvidenceKind
from taxpayers.models import Change, GrantedPermission
from taxpayers.services import ServiceError, revoke_permission
from taxpayers.services.granted_permissions import REVOKE_CODES
from taxpayers.standing.as_of import rows_as_of
from tests.every_address.test_operations import ROWS, Row, by_command, by_rest, new_values, on_page
from tests.management_api.portal import assert_ok, errors_of, new_portal
from tests.permission_requests.parties import SIGN_IN, SIGNED_IN
from tests.support import make
from tests.support.answers import body_of
from tests.support.factories import SUBMIT
from tests.support.moments import now, why
from tests.support.staff import csv_rows_of, list_url, page_url, staff_client, text_of

pytestmark = pytest.mark.django_db
WHY = {"reason": "a test"}


@pytest.fixture(autouse=True)
def required(settings: Settings) -> None:
    settings.EVIDENCE_REQUIRED = True


# Each grant, change and end, by its name.
OPERATIONS = {
    **{
        name: ROWS[name]
        for name in (
            *("grant a permission", "import permissions", "extend_permission"),
            *("end_permission_earlier", "revoke_permission"),
        )
    },
    "revoke codes": Row(
        "grant",
        command=(
            *("revoke_permission", "--taxpayer", "<OWNER>", "--intermediary", "<AGENT>"),
            *("--permission", SUBMIT),
        ),
        of=GrantedPermission,
        record=REVOKE_CODES,
    ),
}


def with_form(row: Row) -> Row:
    lines = zip(row.file.splitlines(), ("paper_form", "F-1"), strict=False)
    return replace(
        row,
        page=row.page and (row.page[0], {**row.page[1], "evidence": "F-1"}),
        rest=row.rest and (*row.rest[:2], proved(row.rest[2])),
        command=row.command if row.file else (*row.command, "--paper-form", "F-1"),
        file="\n".join(map(",".join, lines)),
    )


def proved(body: Mapping[str, Any]) -> dict[str, Any]:
    if "rows" in body:
        return {"rows": [proved(row) for row in body["rows"]]}
    return {**body, "evidence": {"paper_form": "F-1"}}


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_door_changes_a_permission_without_evidence(name: str, tmp_path: Path) -> None:
    row = OPERATIONS[name]
    doors = {
        "page": on_page(staff_client("registrar")),
        "REST": by_rest(new_portal()),
        "command": partial(by_command, tmp_path),
    }
    for door, attempt in doors.items():
        values = new_values(row, "InvoicingAPI")
        if row.record:
            owner = GrantedPermission.objects.get(pk=values["<PK>"]).taxpayer
            values["<OWNER>"] = str(owner.identifier)
        before = Change.objects.count()
        attempt(row, values)
        assert Change.objects.count() == before, door
        has_door = attempt(with_form(row), values)
        changes = list(Change.objects.order_by("pk")[before:])
        assert bool(changes) is has_door, door
        for change in changes:
            proof = change.after["evidence"]
            assert (proof["kind"], proof["paper_form"]) == ("paper_form", "F-1")
            assert GrantedPermission.objects.get(pk=change.object_id).evidence == proof


def test_what_was_entered_before_says_so_and_is_part_of_the_past(settings: Settings) -> None:
    """Also when evidence is asked for from now on."""
    row: Any = make.permission(created_at=now() - timedelta(days=3))
    portal, before = new_portal(), now()
    shown = assert_ok(portal.get(f"/permissions/{row.pk}"))
    assert shown["evidence"] == {"kind": "entered_before"}
    client = staff_client("registrar")
    assert "None was entered" in text_of(client.get(page_url(row)))
    revoke_permission(permission=row, evidence=SIGNED_IN, **why())
    page = text_of(client.get(page_url(row)))
    assert "p-1 as director" in page
    assert "words portal-1, sha256:0f" in page
    exported = csv_rows_of(client.get(f"{list_url(GrantedPermission)}export.csv"))
    assert "p-1 as director" in str(exported)
    row.refresh_from_db()
    assert row.evidence["approved_by"] == "p-1"
    (past,) = rows_as_of([row], before)
    assert (past.evidence, past.revoked_at) == (None, None)


def revoked_with(row: GrantedPermission, evidence: dict[str, Any]) -> Any:
    sent = {**WHY, "evidence": evidence}
    return new_portal().post(f"/permissions/{row.pk}/revoke", sent, If_Match="*")


@pytest.mark.parametrize("name", SIGN_IN)
def test_of_a_person_who_signed_in_everything_is_needed(name: str) -> None:
    row: Any = make.permission()
    evidence = {k: v for k, v in SIGN_IN.items() if k != name}
    for given in (evidence, {**evidence, name: " "}):
        assert revoked_with(row, given).status_code == 422
    with pytest.raises(ServiceError, match="Give "):
        revoke_permission(
            permission=row, evidence=Evidence(EvidenceKind.SIGN_IN, **evidence), **why()
        )


def test_evidence_is_one_thing_and_of_the_past() -> None:
    row: Any = make.permission()
    for given, says in (
        ({"paper_form": "F-1", "approved_by": "p"}, "only"),
        ({**SIGN_IN, "at": "2099-01-01"}, "future"),
        ({"nonsense": 1}, "no such field"),
    ):
        answer = revoked_with(row, given)
        body = body_of(answer)
        assert answer.status_code == 422
        text = " ".join(errors_of(body).values()) if "errors" in body else body["detail"]
        assert says in text


def test_without_the_setting_evidence_is_optional(settings: Settings) -> None:
    settings.EVIDENCE_REQUIRED = False
    revoke = ROWS["revoke_permission"]
    on_page(staff_client("registrar"))(revoke, new_values(revoke, "InvoicingAPI"))
    assert Change.objects.get(action="revoke_permission").after.get("evidence") is None
