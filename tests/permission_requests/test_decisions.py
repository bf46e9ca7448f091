"""Taxpayers decide requests by the portal, and by paper forms that staff and operators enter."""

from datetime import timedelta
from typing import Any

import pytest

from taxpayers.evidence import on_paper
from taxpayers.models import Change, GrantedPermission, PermissionRequest
from taxpayers.services import Author, ServiceError
from taxpayers.services.decisions import (
    OtherTaxpayer,
    approve_permission_request,
    decline_permission_request,
)
from taxpayers.services.permission_requests import (
    expire_permission_requests,
    withdraw_permission_request,
)
from tests.introspection.api import token_of
from tests.management_api.portal import assert_ok, assert_problem, new_portal, send
from tests.permission_requests.parties import (
    ASK,
    SIGN_IN,
    SIGNED_IN,
    asked,
    make_late,
    new_agent,
)
from tests.support.answers import body_of
from tests.support.command_line import run
from tests.support.factories import SUBMIT, VIEW, TaxpayerFactory
from tests.support.moments import now
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of

pytestmark = pytest.mark.django_db
BY = Author("portal")


def test_a_portal_lists_and_approves_and_the_intermediary_logs_in() -> None:
    agent, taxpayer = new_agent(), TaxpayerFactory.create()
    row, portal = asked(agent, taxpayer.tin), new_portal("RegistryAPI:permissions")
    asked(agent, TaxpayerFactory.create().tin)
    listed = assert_ok(portal.get(f"/permission-requests?taxpayer={taxpayer.tin}&state=open"))
    assert [one["id"] for one in listed["items"]] == [str(row.pk)]
    path = f"/permission-requests/{row.pk}"
    shown = assert_ok(portal.get(path))
    assert (shown["granted_now"], shown["evidence"]) == ([], {"kind": "entered_before"})
    sent = {
        "taxpayer": taxpayer.tin,
        "permissions": [VIEW],
        "valid_until": "2037-06-30",
        "evidence": SIGN_IN,
    }
    done = assert_ok(portal.post(f"{path}/approve", sent, If_Match=portal.etag(path)))
    assert (done["state"], done["evidence"]["approved_by"]) == ("approved", "p-1")
    permission = assert_ok(portal.get(f"/permissions/{done['permission']}"))
    assert (permission["permissions"], permission["valid_until"][:10]) == ([VIEW], "2037-06-30")
    assert permission["evidence"] == {"kind": "sign_in", **SIGN_IN} | {
        "at": permission["evidence"]["at"]
    }
    polled = body_of(send("GET", f"{ASK}/{row.pk}", token_of(agent)))
    assert (polled["state"], polled["granted"]["permissions"]) == ("approved", [VIEW])
    assert agent.login(on_behalf_of=taxpayer.tin).status_code == 200
    again = portal.post(f"{path}/approve", sent, If_Match="*")
    assert_problem(again, 422, "change_refused", "already approved")


def test_who_permitted_this_when_and_how_proved_is_answered_by_the_api_only() -> None:
    """An auditor's question, for each of many grants."""
    agent, portal = new_agent(), new_portal()
    token = token_of(agent)
    for number in range(20):
        row = asked(agent, TaxpayerFactory.create().tin, token=token)
        evidence: Any = {"paper_form": f"F-{number}"} if number % 2 else SIGN_IN
        sent = {"taxpayer": str(row.asked), "evidence": evidence}
        assert_ok(portal.post(f"/permission-requests/{row.pk}/approve", sent, If_Match="*"))
    found = []
    for permission in assert_ok(portal.get("/permissions"))["items"]:
        history = assert_ok(portal.get(f"/permissions/{permission['id']}/history"))["items"]
        (proof,) = (one["after"]["evidence"] for one in history if "codes" in one["after"])
        found.append(proof.get("paper_form") or (proof["approved_by"], proof["capacity"]))
        assert proof["at"]
    assert found.count(("p-1", "director")) == 10
    assert {name for name in found if isinstance(name, str)} == {f"F-{n}" for n in range(1, 20, 2)}


def test_to_replace_ends_what_was_granted_and_to_add_leaves_it() -> None:
    agent, taxpayer = new_agent(), TaxpayerFactory.create()
    for replaces, in_force in ((False, 1), (False, 2), (True, 1)):
        row = asked(agent, taxpayer.tin, replaces=replaces, reference=f"{replaces}{in_force}")
        approve_permission_request(
            request=row,
            codes=[SUBMIT if in_force == 1 else VIEW],
            evidence=SIGNED_IN,
            by=BY,
            at=now(),
        )
        assert GrantedPermission.objects.filter(revoked_at=None).count() == in_force
    ended = Change.objects.filter(action="revoke_permission")
    assert [one.after["evidence"]["approved_by"] for one in ended] == ["p-1", "p-1"]
    assert len({one.task_id for one in ended}) == 1


REFUSED: list[tuple[dict[str, Any], type[ServiceError], str]] = [
    ({"taxpayer": "other"}, OtherTaxpayer, "Only {tin} can decide it"),
    ({"codes": [SUBMIT, "documents:cancel"]}, ServiceError, "not asked for: documents:cancel"),
    ({"until": now() + timedelta(days=60)}, ServiceError, "Approve it until then, or less"),
    ({"until": now() - timedelta(days=1)}, ServiceError, "in the past"),
    ({"evidence": on_paper("x" * 200)}, ServiceError, "Shorten"),
]


@pytest.mark.parametrize(("given", "fault", "says"), REFUSED, ids=lambda v: str(v)[:30])
def test_no_more_than_was_asked_is_approved(
    given: dict[str, Any], fault: type[ServiceError], says: str
) -> None:
    end = (now() + timedelta(days=30)).isoformat()
    row = asked(new_agent(), TaxpayerFactory.create().tin, valid_until=end)
    if "taxpayer" in given:
        given = {"taxpayer": TaxpayerFactory.create().identifier}
    with pytest.raises(fault, match=says.format(tin=row.tin)):
        approve_permission_request(
            **{"request": row, "evidence": SIGNED_IN, **given}, by=BY, at=now()
        )
    row.refresh_from_db()
    assert (row.state, GrantedPermission.objects.count()) == ("open", 0)


def test_a_request_is_decided_once_in_time_and_between_active_parties() -> None:
    agent, at = new_agent(), now()
    unknown, late = asked(agent, "C7770000001"), asked(agent, TaxpayerFactory.create().tin)
    inactive = asked(agent, TaxpayerFactory.create(is_active=False).tin)
    declined, withdrawn = (asked(agent, TaxpayerFactory.create().tin) for _ in range(2))
    make_late(late)
    decline_permission_request(request=declined, evidence=SIGNED_IN, by=BY, at=at)
    withdraw_permission_request(request=withdrawn, by=BY, at=at)
    for row, says in (
        (unknown, "There is no taxpayer C7770000001"),
        (inactive, "not active"),
        (late, "expired"),
        (declined, "already declined"),
        (withdrawn, "was withdrawn"),
    ):
        with pytest.raises(ServiceError, match=says):
            approve_permission_request(request=row, evidence=SIGNED_IN, by=BY, at=now())
    assert expire_permission_requests(by=BY, at=now()) == 1
    assert expire_permission_requests(by=BY, at=now()) == 0
    late.refresh_from_db()
    assert late.state == "expired"
    assert not GrantedPermission.objects.exists()


def test_staff_enter_a_paper_form() -> None:
    agent, taxpayer = new_agent(), TaxpayerFactory.create()
    row, registrar = asked(agent, taxpayer.tin, reference="case 7"), staff_client("registrar")
    assert taxpayer.tin in text_of(registrar.get(list_url(PermissionRequest)))
    page = text_of(registrar.get(page_url(row)))
    for text in (taxpayer.name, "case 7", "Once it is approved", "Open", "Approve", "Decline"):
        assert text in page
    form = {"codes": [VIEW], "until": "2037-01-31", "evidence": "F-7"}
    done = registrar.post(task_url(row, "approve_permission_request"), form, follow=True)
    assert "Paper form F-7" in text_of(done)
    permission: Any = GrantedPermission.objects.get()
    assert (permission.evidence["kind"], permission.evidence["paper_form"]) == ("paper_form", "F-7")
    shown = text_of(registrar.get(page_url(permission)))
    assert shown.count("Paper form F-7") == 2  # of the permission, and in its history
    other = asked(agent, taxpayer.tin)
    registrar.post(task_url(other, "decline_permission_request"), {})
    other.refresh_from_db()
    assert other.state == "declined"
    unknown = asked(agent, "C7770000001")
    assert "No such taxpayer is registered" in text_of(registrar.get(page_url(unknown)))


def test_an_operator_decides_by_command() -> None:
    agent = new_agent()
    first, second = (asked(agent, TaxpayerFactory.create().tin) for _ in range(2))
    command = ("approve_permission_request", str(first.pk), "--permission", VIEW)
    code, out, err = run(*command, "--until", "2037-01-31", "--paper-form", "F-9")
    assert (code, err) == (0, ""), out
    assert run("decline_permission_request", str(second.pk), "--json")[0] == 0
    states = PermissionRequest.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["approved", "declined"]
    granted: Any = GrantedPermission.objects.get()
    assert granted.evidence["paper_form"] == "F-9"
    missing = run("decline_permission_request", "01a219cd-9338-7436-8a14-bc06b1a29016")
    assert missing[0] == 1
