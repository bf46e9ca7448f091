"""Each door of each grant, change and end of a permission: the evidence that it stores."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django import Settings

from taxpayers.evidence import Evidence, EvidenceKind
from taxpayers.models import Change, GrantedPermission
from taxpayers.services import ServiceError, revoke_permission
from taxpayers.standing.as_of import rows_as_of
from tests.management_api.portal import assert_ok, errors_of, new_portal
from tests.permission_requests.parties import SIGN_IN, SIGNED_IN
from tests.support import make
from tests.support.answers import body_of
from tests.support.command_line import run
from tests.support.factories import SUBMIT
from tests.support.moments import now, why
from tests.support.staff import (
    csv_rows_of,
    list_url,
    opened,
    page_url,
    staff_client,
    task_url,
    text_of,
)

pytestmark = pytest.mark.django_db
LATER, EARLIER = "2037-12-31", str((now() + timedelta(days=9)).date())
WHY = {"reason": "a test"}
Door = Callable[[GrantedPermission, bool, Path], None]


@pytest.fixture(autouse=True)
def required(settings: Settings) -> None:
    settings.EVIDENCE_REQUIRED = True


def on_page(task: str, **data: Any) -> Door:
    def do(row: GrantedPermission, given: bool, _tmp: Path) -> None:
        client = staff_client("registrar", f"nurul{given}")
        url = task_url(GrantedPermission if "taxpayer" in data else row, task)
        sent = opened(client, url) | named(data, row) | ({"evidence": "F-1"} if given else {})
        client.post(url, {k: v for k, v in sent.items() if v is not None})

    return do


def by_file(row: GrantedPermission, given: bool, tmp_path: Path) -> None:
    client = staff_client("registrar", f"nurul{given}")
    url = task_url(GrantedPermission, "import_permissions")
    file = SimpleUploadedFile("x.csv", rows_of(row, given).encode())
    sent = client.post(url, {"file": file}, follow=True)
    if sent.redirect_chain:
        client.post(sent.redirect_chain[-1][0])


def rows_of(row: GrantedPermission, given: bool) -> str:
    new, agent = make.taxpayer().tin, row.intermediary.taxpayer.tin
    form = "F-1" if given else ""
    return f"taxpayer,intermediary,codes,paper_form\n{new},{agent},{SUBMIT},{form}\n"


def by_rest(path: str, **body: Any) -> Door:
    def do(row: GrantedPermission, given: bool, _tmp: Path) -> None:
        proof = {"evidence": {"paper_form": "F-1"}} if given else {}
        sent = named(body, row) | proof
        if path == "/imports/permissions":
            sent = {"rows": [sent]}
        answer = new_portal().post(path.format(row.pk), sent, If_Match="*")
        assert answer.status_code in (200, 201, 422), answer.content

    return do


def by_command(*words: str) -> Door:
    def do(row: GrantedPermission, given: bool, tmp: Path) -> None:
        (tmp / "rows.csv").write_text(rows_of(row, given))
        values = {"<ID>": str(row.pk), "<FILE>": str(tmp / "rows.csv"), **names(row)}
        form = ["--paper-form", "F-1"] if given and "<FILE>" not in words else []
        run(*(values.get(word, word) for word in words), *form)

    return do


def names(row: GrantedPermission) -> dict[str, str]:
    return {
        "<NEW>": make.taxpayer().tin,
        "<TIN>": row.taxpayer.tin,
        "<AGENT>": row.intermediary.taxpayer.tin,
    }


def named(data: dict[str, Any], row: GrantedPermission) -> dict[str, Any]:
    values = names(row)
    return {k: values.get(v, v) if isinstance(v, str) else v for k, v in data.items()}


NEW = {"taxpayer": "<NEW>", "intermediary": "<AGENT>"}
PAIR = ("--taxpayer", "<TIN>", "--intermediary", "<AGENT>")
DOORS: dict[str, Door] = {
    "grant: page": on_page("grant_permission", **NEW, codes=[SUBMIT]),
    "grant: REST": by_rest("/permissions", **NEW, permissions=[SUBMIT]),
    "grant: command": by_command(
        *("grant_permission", "--taxpayer", "<NEW>", "--intermediary", "<AGENT>"),
        *("--permission", SUBMIT),
    ),
    "import: page": by_file,
    "import: REST": by_rest("/imports/permissions", **NEW, permissions=[SUBMIT]),
    "import: command": by_command("import_registry", "<FILE>", "--kind", "permissions"),
    "extend: page": on_page("extend_permission", expires=LATER, **WHY),
    "extend: REST": by_rest("/permissions/{}/extend", valid_until=LATER, **WHY),
    "extend: command": by_command("extend_permission", "<ID>", "--until", LATER),
    "end earlier: page": on_page("end_permission_earlier", expires=EARLIER, **WHY),
    "end earlier: REST": by_rest("/permissions/{}/end-earlier", valid_until=EARLIER, **WHY),
    "end earlier: command": by_command("end_permission_earlier", "<ID>", "--until", EARLIER),
    "revoke: page": on_page("revoke_permission", **WHY),
    "revoke: REST": by_rest("/permissions/{}/revoke", **WHY),
    "revoke: command": by_command("revoke_one_permission", "<ID>"),
    "revoke codes: command": by_command("revoke_permission", *PAIR, "--permission", SUBMIT),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_door_changes_a_permission_without_evidence(door: str, tmp_path: Path) -> None:
    row: Any = make.permission(valid_until=now() + timedelta(days=99))
    before = Change.objects.count()
    DOORS[door](row, False, tmp_path)
    assert Change.objects.count() == before
    DOORS[door](row, True, tmp_path)
    changes = list(Change.objects.order_by("pk")[before:])
    assert changes
    for change in changes:
        proof = change.after["evidence"]
        assert (proof["kind"], proof["paper_form"]) == ("paper_form", "F-1")
        changed = GrantedPermission.objects.get(pk=change.object_id)
        assert changed.evidence == proof


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


def test_without_the_setting_evidence_is_optional(settings: Settings, tmp_path: Path) -> None:
    settings.EVIDENCE_REQUIRED = False
    DOORS["revoke: page"](make.permission(), False, tmp_path)
    assert Change.objects.get(action="revoke_permission").after.get("evidence") is None
