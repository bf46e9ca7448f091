"""A request is asked for, withdrawn, and decided: by the portal, staff or operators."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

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
from tests.introspection.api import claims_of, token_of
from tests.management_api.portal import assert_ok, assert_problem, new_portal, send
from tests.permission_requests.parties import (
    ASK,
    RETURN,
    SIGN_IN,
    SIGNED_IN,
    ask,
    asked,
    look_of,
    make_late,
    new_agent,
)
from tests.support import make
from tests.support.answers import body_of
from tests.support.command_line import error_of, json_output_of, output_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import SUBMIT, VIEW, stored_login
from tests.support.moments import now
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of
from tokens.login_events.counting import note_first_uses
from tokens.models import CountingMark

pytestmark = pytest.mark.django_db
UNKNOWN = "C7770000001"  # no such taxpayer


def test_it_asks_polls_lists_and_withdraws(settings: Settings) -> None:
    agent, taxpayer = new_agent(), make.taxpayer()
    token = token_of(agent)
    more = {"valid_until": "2037-12-31", "reference": "case 7", "return_address": RETURN}
    first = ask(agent, taxpayer.tin, token, permissions=[VIEW, SUBMIT], **more)
    body = body_of(first)
    assert first.status_code == 202
    assert first["Location"] == f"{ASK}/{body['id']}"
    assert body == {
        "id": body["id"],
        "state": "open",
        "taxpayer": taxpayer.tin,
        "permissions": [SUBMIT, VIEW],
        "valid_from": None,
        "valid_until": "2037-12-31T15:59:59Z",
        "replaces": False,
        "reference": "case 7",
        "return_address": RETURN,
        "asked_at": body["asked_at"],
        "expires_at": body["expires_at"],
        "decided_at": None,
        "granted": None,
        "confirm_url": f"{settings.CONFIRM_URL}/{body['id']}",
    }
    row = PermissionRequest.objects.get()
    assert abs(row.expires_at - row.created_at - timedelta(days=21)) < timedelta(seconds=1)
    assert body_of(ask(agent, taxpayer.tin, token, **more))["id"] == body["id"]  # safe to repeat
    other = body_of(ask(agent, taxpayer.tin, token))["id"]
    assert other != body["id"]
    listed = body_of(send("GET", ASK, token))
    assert [one["id"] for one in listed["requests"]] == [other, body["id"]]
    assert listed["next_cursor"] is None
    assert send("GET", f"{ASK}?cursor={other}", token).status_code == 400
    assert body_of(send("GET", f"{ASK}/{body['id']}", token)) == body
    for _ in range(2):
        answer = send("POST", f"{ASK}/{body['id']}/withdraw", token)
        assert (answer.status_code, body_of(answer)["state"]) == (200, "withdrawn")
    actions = Change.objects.filter(object_id=body["id"]).order_by("pk")
    assert [c.action for c in actions] == ["ask_permission", "withdraw_permission_request"]
    make_late(PermissionRequest.objects.get(pk=other))
    assert body_of(send("GET", f"{ASK}/{other}", token))["state"] == "expired"
    assert send("POST", f"{ASK}/{other}/withdraw", token).status_code == 409
    stranger = token_of(new_agent())
    for path, method in ((f"{ASK}/{other}", "GET"), (f"{ASK}/{other}/withdraw", "POST")):
        assert send(method, path, stranger).status_code == 404
    assert send("GET", f"{ASK}/x", token).status_code == 404


BAD: list[tuple[dict[str, Any], int, str]] = [
    ({"taxpayer": "x!"}, 400, "taxpayer must be TIN or TIN:ROB"),
    ({"permissions": []}, 400, "permissions: "),
    ({"permissions": ["documents:burn"]}, 409, "There is no permission code documents:burn"),
    ({"valid_until": "tomorrow"}, 400, "valid_until must be a day"),
    ({"valid_until": "2020-01-01"}, 409, "in the past"),
    ({"valid_from": "2037-12-31", "valid_until": "2037-01-01"}, 409, "before it begins"),
    ({"return_address": "https://evil.example.org"}, 400, "not registered for this client"),
    ({"reference": "a\nb"}, 409, "control characters"),
    ({"nonsense": 1}, 400, "There is no field nonsense"),
]


@pytest.mark.parametrize(("body", "status", "says"), BAD, ids=lambda v: str(v)[:30])
def test_what_no_taxpayer_could_approve_is_refused(
    body: dict[str, Any], status: int, says: str
) -> None:
    answer = ask(new_agent(), UNKNOWN, **body)
    assert answer.status_code == status
    assert says in body_of(answer)["error_description"]
    assert not PermissionRequest.objects.exists()


def test_who_may_not_ask() -> None:
    agent = new_agent()
    own = ask(agent, agent.tin)
    assert (own.status_code, "needs no permission" in own.content.decode()) == (409, True)
    without_scope = new_agent(scopes="InvoicingAPI")
    assert ask(without_scope, UNKNOWN)["WWW-Authenticate"].endswith('scope="PermissionRequestAPI"')
    no_role = new_erp(scopes="PermissionRequestAPI")
    assert "no active intermediary" in ask(no_role, UNKNOWN).content.decode()
    permission = make.permission(intermediary=agent.role)
    on_behalf = token_of(agent, on_behalf_of=str(permission.taxpayer.identifier))
    assert "without the header onbehalfof" in ask(agent, UNKNOWN, on_behalf).content.decode()
    assert not PermissionRequest.objects.exists()


def test_open_requests_are_limited_for_each_intermediary(settings: Settings) -> None:
    settings.OPEN_REQUESTS_MOST = 2
    agent, other = new_agent(), new_agent()
    token = token_of(agent)
    ids = [body_of(ask(agent, f"{UNKNOWN}{n}", token))["id"] for n in range(2)]
    full = ask(agent, f"{UNKNOWN}9", token)
    assert (full.status_code, "2 requests" in body_of(full)["error_description"]) == (409, True)
    assert ask(agent, f"{UNKNOWN}0", token).status_code == 202  # the same one again
    assert ask(other, f"{UNKNOWN}9").status_code == 202
    send("POST", f"{ASK}/{ids[0]}/withdraw", token)
    assert ask(agent, f"{UNKNOWN}9", token).status_code == 202


def test_a_real_and_an_invented_taxpayer_cannot_be_told_apart() -> None:
    agent = new_agent()
    token = token_of(agent)
    granted = make.permission(intermediary=agent.role).taxpayer
    known = make.taxpayer(), make.taxpayer(is_active=False), granted
    tins = [*(row.tin for row in known), UNKNOWN, "C7770000002"]
    assert len({look_of(lambda tin: ask(agent, tin, token), tin) for tin in tins}) == 1
    assert GrantedPermission.objects.count() == 1


WHO, STATEMENT = "/api/v1/representatives", "/api/v1/statement"


@pytest.fixture
def agent() -> Erp:
    return new_agent()


@pytest.fixture
def permission(erp: Erp, agent: Erp) -> Any:
    return make.permission(taxpayer=erp.system_user.taxpayer, intermediary=agent.role)


def test_who_acts_for_it_since_when_and_last_used(
    erp: Erp, agent: Erp, permission: GrantedPermission
) -> None:
    make.permission()  # of another taxpayer
    make.permission(taxpayer=permission.taxpayer, revoked_at=now())
    assert agent.login(on_behalf_of=erp.tin).status_code == 200
    (one,) = body_of(send("GET", WHO, token_of(erp)))["representatives"]
    assert (one["id"], one["intermediary"], one["state"]) == (permission.pk, agent.tin, "in_force")
    assert (one["last_used_at"] is not None, one["first_used_at"]) == (True, None)
    assert one["evidence"] == {"kind": "entered_before"}
    on_behalf = token_of(agent, on_behalf_of=erp.tin)
    for path in (WHO, STATEMENT):
        assert "for another taxpayer" in send("GET", path, on_behalf).content.decode()
        assert send("GET", f"{path}?cursor=x", token_of(erp)).status_code == 400


def test_it_ends_a_permission_and_approves_nothing(
    agent: Erp, permission: GrantedPermission
) -> None:
    own = new_erp(taxpayer=permission.taxpayer, scopes="InvoicingAPI RepresentativeAPI")
    path = f"{WHO}/{permission.pk}"
    answer = send("DELETE", path, token_of(own, scope="InvoicingAPI"))
    assert (answer.status_code, "RepresentativeAPI" in answer["WWW-Authenticate"]) == (403, True)
    token = token_of(own)
    other: Any = make.permission()
    for wrong in (str(other.pk), "0", "x", "9" * 30):
        assert send("DELETE", f"{WHO}/{wrong}", token).status_code == 404
    for _ in range(2):
        answer = send("DELETE", path, token)
        body = body_of(answer)
        assert (answer.status_code, body["state"]) == (200, "revoked")
    proof = Change.objects.get(action="revoke_permission").after["evidence"]
    assert (proof["kind"], proof["approved_by"]) == ("own_client", own.client_id)
    assert proof["sign_in_method"] == "client_secret"
    assert agent.login(on_behalf_of=str(permission.taxpayer.identifier)).status_code == 400
    assert send("POST", path, token).status_code == 405


def test_the_statement_has_each_token_and_no_refusal(erp: Erp, agent: Erp, permission: Any) -> None:
    old = stored_login(now() - timedelta(days=40), subject=erp.tin, actor="D1", scope="x")
    stored_login(subject=erp.tin, reason="invalid_scope")
    stored_login(subject="C9")
    token, other = token_of(erp), token_of(agent, on_behalf_of=erp.tin)
    body = body_of(send("GET", STATEMENT, token))
    assert [(one["reference"], one["intermediary"]) for one in body["tokens"]] == [
        *((claims_of(other)["jti"], agent.tin), (claims_of(token)["jti"], None))
    ]
    since = (now() - timedelta(days=50)).date()
    longer = body_of(send("GET", f"{STATEMENT}?from={since}", token))["tokens"]
    assert longer[-1]["reference"] == str(old.pk)
    until = body_of(send("GET", f"{STATEMENT}?from={since}&to={since + timedelta(20)}", token))
    assert [one["reference"] for one in until["tokens"]] == [str(old.pk)]
    for wrong in ("from=x", "to=2020-01-01&from=2020-02-01", "from=2001-01-01"):
        assert send("GET", f"{STATEMENT}?{wrong}", token).status_code == 400


def test_the_first_use_of_a_permission_is_recorded_once(erp: Erp, agent: Erp) -> None:
    """For each permission that was in force then; some minutes after the login."""
    pair = {"taxpayer": erp.system_user.taxpayer, "intermediary": agent.role}
    used: Any = make.permission(**pair)
    later: Any = make.permission(**pair, valid_from=now() - timedelta(minutes=7))
    unused: Any = make.permission(intermediary=agent.role)
    by, first = Author("x"), now() - timedelta(minutes=9)
    for minutes, reason in ((9, ""), (8, ""), (8, "invalid_scope")):
        stored_login(now() - timedelta(minutes=minutes), reason, subject=erp.tin, actor=agent.tin)
    tin = str(unused.taxpayer.identifier)
    stored_login(now() - timedelta(minutes=8), "invalid_scope", subject=tin, actor=agent.tin)
    stored_login(now() - timedelta(minutes=1), subject=tin, actor=agent.tin)  # not settled yet
    assert [note_first_uses(by=by, at=now()) for _ in range(2)] == [1, 0]
    assert note_first_uses(by=by, at=now() + timedelta(minutes=6)) == 1
    for row in (used, later, unused):
        row.refresh_from_db()
    assert abs(used.first_used_at - first) < timedelta(seconds=5)
    assert (later.first_used_at, unused.first_used_at is not None) == (None, True)
    assert Change.objects.filter(action="use_permission").count() == 2
    assert CountingMark.objects.filter(pk=2).exists()


BY = Author("portal")


def test_a_portal_lists_and_approves_and_the_intermediary_logs_in() -> None:
    agent, taxpayer = new_agent(), make.taxpayer()
    row, portal = asked(agent, taxpayer.tin), new_portal("RegistryAPI:permissions")
    asked(agent, make.taxpayer().tin)
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
    own = f"/permissions/{done['permission']}"
    permission = assert_ok(portal.get(own))
    assert (permission["permissions"], permission["valid_until"][:10]) == ([VIEW], "2037-06-30")
    assert permission["evidence"] == {"kind": "sign_in", **SIGN_IN} | {
        "at": permission["evidence"]["at"]
    }
    (granted,) = assert_ok(portal.get(f"{own}/history"))["items"]  # an auditor's question
    assert granted["after"]["evidence"] == permission["evidence"]
    polled = body_of(send("GET", f"{ASK}/{row.pk}", token_of(agent)))
    assert (polled["state"], polled["granted"]["permissions"]) == ("approved", [VIEW])
    assert agent.login(on_behalf_of=taxpayer.tin).status_code == 200
    again = portal.post(f"{path}/approve", sent, If_Match="*")
    assert_problem(again, 422, "change_refused", "already approved")


def test_to_replace_ends_what_was_granted_and_to_add_leaves_it() -> None:
    agent, taxpayer = new_agent(), make.taxpayer()
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
    row = asked(new_agent(), make.taxpayer().tin, valid_until=end)
    if "taxpayer" in given:
        given = {"taxpayer": make.taxpayer().identifier}
    with pytest.raises(fault, match=says.format(tin=row.tin)):
        approve_permission_request(
            **{"request": row, "evidence": SIGNED_IN, **given}, by=BY, at=now()
        )
    row.refresh_from_db()
    assert (row.state, GrantedPermission.objects.count()) == ("open", 0)


def test_a_request_is_decided_once_in_time_and_between_active_parties() -> None:
    agent, at = new_agent(), now()
    unknown, late = asked(agent, "C7770000001"), asked(agent, make.taxpayer().tin)
    inactive = asked(agent, make.taxpayer(is_active=False).tin)
    declined, withdrawn = (asked(agent, make.taxpayer().tin) for _ in range(2))
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


def test_staff_and_operators_enter_a_paper_form() -> None:
    agent, taxpayer = new_agent(), make.taxpayer()
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
    third, fourth = (asked(agent, make.taxpayer().tin) for _ in range(2))
    command = ("approve_permission_request", str(third.pk), "--permission", VIEW)
    output_of(*command, "--until", "2037-01-31", "--paper-form", "F-9")
    granted: Any = GrantedPermission.objects.get(taxpayer__tin=third.tin)
    assert ([code.pk for code in granted.codes.all()], granted.valid_until.year) == ([VIEW], 2037)
    assert granted.evidence["paper_form"] == "F-9"
    answer = json_output_of("decline_permission_request", str(fourth.pk))
    assert (answer["id"], answer["state"]) == (str(fourth.pk), "declined")
    missing = "01a219cd-9338-7436-8a14-bc06b1a29016"
    assert missing in error_of("decline_permission_request", missing)
