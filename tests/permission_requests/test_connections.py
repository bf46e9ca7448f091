"""An ERP system connects without a secret: it asks with a key, is approved, and logs in."""

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings as configured
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from joserfc.jwk import ECKey
from pytest_django import Settings

from identity.sandbox.registry import make_sandbox
from taxpayers.models import Change, GrantedPermission, PermissionRequest, SystemUser
from taxpayers.services import Author, ServiceError, connections
from taxpayers.services.decisions import (
    approve_connection,
    approve_permission_request,
    decline_connection,
    decline_permission_request,
)
from tests.client_auth.key_erp import KeyErp
from tests.management_api.portal import assert_ok, new_portal
from tests.permission_requests.parties import (
    SIGN_IN,
    SIGNED_IN,
    asked,
    look_of,
    make_late,
    new_agent,
)
from tests.permission_requests.stand_in_erp import StandInErp
from tests.permission_requests.stand_in_portal import new_ticket
from tests.permission_requests.test_confirm import (
    PERSON,
    assert_refused,
    decide,
    form_of,
    opened,
    text_of,
    ticket_for,
    with_scopes,
)
from tests.support import make
from tests.support.answers import body_of
from tests.support.command_line import run
from tests.support.erp import post
from tests.support.factories import VIEW
from tests.support.moments import now
from tests.support.staff import list_url, page_url, staff_client, task_url, text_of as staff_text
from tokens.self_service import connections as door

pytestmark = pytest.mark.django_db
ASK = "/api/v1/connections"
BACK = "https://erp.example.org/connected?case=7"
UNKNOWN = "C7770000001"  # no such taxpayer


@pytest.fixture
def erp(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> StandInErp:
    """A new one, of which nothing is registered, and no address has called."""
    monkeypatch.setattr(door, "_calls", type(door._calls)(100))
    return StandInErp(configured.AUTH_URL)


@pytest.fixture
def portal() -> KeyErp:
    return with_scopes("RegistryAPI:credentials")


def call(
    erp: StandInErp, method: str, path: str, body: Any = None, *, proof: str = "", **headers: str
) -> Any:
    sent = {"DPoP": proof or erp.proof(method, path), **headers}
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    client = Client(raise_request_exception=False)
    return client.generic(method, path, data, content_type="application/json", headers=sent)


def ask(erp: StandInErp, tin: str, *, proof: str = "", **body: Any) -> Any:
    return call(erp, "POST", ASK, {"taxpayer": tin, "name": "Kuching ERP", **body}, proof=proof)


def connecting(erp: StandInErp, tin: str, **body: Any) -> Any:
    answer = ask(erp, tin, **body)
    assert answer.status_code == 202, answer.content
    return PermissionRequest.objects.get(pk=body_of(answer)["id"])


def poll(erp: StandInErp, row: PermissionRequest) -> dict[str, Any]:
    return assert_ok(call(erp, "GET", f"{ASK}/{row.pk}"))


def test_from_a_new_key_to_a_token_and_its_end(erp: StandInErp, portal: KeyErp) -> None:
    taxpayer = make.taxpayer()
    make.system_user(taxpayer=taxpayer, name="The old ERP")
    first = ask(erp, taxpayer.tin, reference="case 7", return_address=BACK)
    body = assert_ok(first, 202)
    row: Any = PermissionRequest.objects.get()
    assert row.expires_at - row.created_at == timedelta(days=3)
    assert first["Location"] == f"{ASK}/{row.pk}"
    assert body == {
        "id": str(row.pk),
        "state": "open",
        "taxpayer": taxpayer.tin,
        "name": "Kuching ERP",
        "scopes": ["InvoicingAPI"],
        "valid_until": None,
        "reference": "case 7",
        "return_address": BACK,
        "key_fingerprint": erp.fingerprint,
        "asked_at": body["asked_at"],
        "expires_at": body["expires_at"],
        "decided_at": None,
        "poll_seconds": 5,
        "connected": None,
        "confirm_url": f"{configured.CONFIRM_URL}/{row.pk}",
    }
    again = body_of(ask(erp, taxpayer.tin, reference="case 7", return_address=BACK))
    assert (again["id"], poll(erp, row)) == (body["id"], body)
    page = opened(row, ticket_for(row, portal))
    shown = text_of(page)
    for text in (taxpayer.tin, "Kuching ERP", erp.fingerprint, "The old ERP", "decline"):
        assert text in shown
    assert "form-action 'self';" in page["Content-Security-Policy"]  # it leads nowhere by itself
    done = decide(row, form_of(page), "approve")
    assert (done.status_code, "Go back to erp.example.org" in text_of(done)) == (200, True)
    user = SystemUser.objects.get(token_endpoint_auth_method="private_key_jwt", taxpayer=taxpayer)
    assert user.name == f"Kuching ERP ({erp.fingerprint[:9]})"
    polled = poll(erp, row)
    assert (polled["state"], polled["connected"]) == (
        "approved",
        {"client_id": user.client_id, "scopes": ["InvoicingAPI"], "expires_at": None},
    )
    token = body_of(post(urlencode(erp.login_form(user.client_id))))["access_token"]
    row.refresh_from_db()
    proof = row.evidence
    assert (proof["kind"], proof["approved_by"], proof["words_version"][:8]) == (
        "sign_in",
        "p-1",
        "confirm-",
    )
    changes = Change.objects.filter(task_id=Change.objects.latest("pk").task_id)
    assert {one.action for one in changes} == {"approve_connection", "issue_credentials"}
    end = "/api/v1/credentials/current?revoke_last=true"
    assert Client().delete(end, headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert post(urlencode(erp.login_form(user.client_id))).status_code == 400


def private(erp: StandInErp) -> dict[str, Any]:
    return erp.key.as_dict(private=True)


OTHER = ECKey.generate_key("P-256").as_dict(private=False)
# What is sent instead of a right proof, and what the answer says; each fault: test_proofs.py.
PROOFS: dict[str, tuple[Any, str]] = {
    "none": (lambda erp: " ", "not a signed JWT"),
    "for another address": (lambda erp: erp.proof("POST", "/connect/token"), "htu"),
    "for another method": (lambda erp: erp.proof("GET", ASK), "htm"),
    "private key": (lambda erp: erp.proof("POST", ASK, private(erp)), "PRIVATE or secret key"),
    "P-384": (
        lambda erp: erp.proof("POST", ASK, ECKey.generate_key("P-384").as_dict(private=False)),
        "must be EC on P-256",
    ),
    "short RSA": (
        lambda erp: erp.proof("POST", ASK, {"kty": "RSA", "n": "w" * 171, "e": "AQAB"}),
        "2048 to 4096 bits",
    ),
    "swapped key": (lambda erp: erp.proof("POST", ASK, OTHER), "signature of the proof is wrong"),
}


@pytest.mark.parametrize("name", PROOFS)
def test_a_wrong_proof_is_refused_by_name_and_stores_nothing(erp: StandInErp, name: str) -> None:
    make, says = PROOFS[name]
    answer = ask(erp, UNKNOWN, proof=make(erp))
    assert answer.status_code in (400, 401), answer.content
    assert says in body_of(answer)["error_description"]
    assert not PermissionRequest.objects.exists()


def test_a_proof_is_used_once_and_only_the_key_that_asked_polls(erp: StandInErp) -> None:
    missing = Client().post(ASK, {}, content_type="application/json")
    assert (missing.status_code, missing["WWW-Authenticate"][:32]) == (
        401,
        'DPoP error="invalid_dpop_proof",',
    )
    proof = erp.proof("POST", ASK)
    row: Any = PermissionRequest.objects.get(pk=body_of(ask(erp, UNKNOWN, proof=proof))["id"])
    path, was_used = f"{ASK}/{row.pk}", "used before"
    assert was_used in ask(erp, UNKNOWN, proof=proof).content.decode()
    proof = erp.proof("GET", path)
    assert call(erp, "GET", path, proof=proof).status_code == 200
    assert was_used in call(erp, "GET", path, proof=proof).content.decode()
    for method, address in (("GET", path), ("POST", f"{path}/withdraw")):
        swapped = call(StandInErp(erp.auth_url), method, address)
        assert (swapped.status_code, "another key" in swapped.content.decode()) == (401, True)
    assert call(erp, "GET", f"{ASK}/x").status_code == 404
    of_agent = asked(new_agent(), UNKNOWN)
    assert call(erp, "GET", f"{ASK}/{of_agent.pk}").status_code == 404
    for _ in range(2):
        assert body_of(call(erp, "POST", f"{path}/withdraw"))["state"] == "withdrawn"
    late = connecting(erp, UNKNOWN, name="x" * 100)  # no name is longer
    make_late(late)
    assert poll(erp, late)["state"] == "expired"
    assert call(erp, "POST", f"{ASK}/{late.pk}/withdraw").status_code == 409


BAD: list[tuple[Any, int, str]] = [
    ({"taxpayer": "x!"}, 400, "taxpayer must be TIN or TIN:ROB"),
    ({"name": ""}, 400, "name: "),
    ({"name": "a\u202eb"}, 409, "control characters"),
    ({"name": "x" * 101}, 409, "Shorten"),
    ({"scopes": ["RegistryAPI"]}, 409, "There is no scope RegistryAPI. Choose from: InvoicingAPI."),
    ({"scopes": ["RepresentativeAPI"]}, 409, "There is no scope RepresentativeAPI"),
    ({"valid_until": "2020-01-01"}, 409, "in the past"),
    ({"return_address": "javascript:alert(1)"}, 409, "A return address is https"),
    ({"return_address": "http://evil.example.org"}, 409, "A return address is https"),
    ({"jwk": {}}, 400, "There is no field jwk"),
    (b"[" * 9000, 400, "JSON"),
    (b"\xff", 400, "JSON"),
]


@pytest.mark.parametrize(("body", "status", "says"), BAD, ids=lambda v: str(v)[:30])
def test_what_cannot_be_approved_is_refused(
    erp: StandInErp, body: Any, status: int, says: str
) -> None:
    right = {"taxpayer": UNKNOWN, "name": "ERP"}
    answer = call(erp, "POST", ASK, {**right, **body} if isinstance(body, dict) else body)
    assert answer.status_code == status, answer.content
    assert says in body_of(answer)["error_description"]
    assert not PermissionRequest.objects.exists()


def test_a_real_and_an_invented_taxpayer_cannot_be_told_apart(erp: StandInErp) -> None:
    known = make.taxpayer(), make.taxpayer(is_active=False)
    tins = [*(row.tin for row in known), UNKNOWN, "C7770000002"]
    assert len({look_of(lambda tin: ask(erp, tin), tin) for tin in tins}) == 1


def test_open_connections_are_limited_and_so_are_calls(
    erp: StandInErp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        connections, "MOST_OPEN", {"all": 6, "address": 4, "taxpayer": 3, "both": 2}
    )

    def asks(tin: str, address: str) -> int:
        new = StandInErp(erp.auth_url)
        body = json.dumps({"taxpayer": tin, "name": "ERP"})
        headers = {"DPoP": new.proof("POST", ASK)}
        client = Client(REMOTE_ADDR=address)
        status: int = client.post(ASK, body, "application/json", headers=headers).status_code
        return status

    one, two, three = "2001:db8::1", "2001:db8:0:1::1", "192.0.2.1"
    assert [asks("C1000001", one) for _ in range(3)] == [202, 202, 409]  # both
    assert [asks("C1000001", two) for _ in range(2)] == [202, 409]  # the taxpayer
    assert [asks(f"C200000{n}", "2001:db8::2") for n in range(3)] == [202, 202, 409]  # the /64
    assert [asks(f"C300000{n}", three) for n in range(2)] == [202, 409]  # all
    PermissionRequest.objects.update(expires_at=now() - timedelta(seconds=1))
    assert asks("C1000001", one) == 202
    monkeypatch.setitem(door._LIMITS, "POST", (1, 60.0))
    assert asks("C1000009", "192.0.2.9") == 202
    refused = ask(erp, "C1000009", proof="nothing is looked at")
    assert refused.status_code == 401  # of another address
    with CaptureQueriesContext(connection) as queries:
        refused = ask(erp, "C1000009")
    assert (refused.status_code, int(refused["Retry-After"]) > 50) == (429, True)
    assert not queries.captured_queries


def test_who_decides_what(erp: StandInErp, portal: KeyErp, settings: Settings) -> None:
    """Each wrong way to approve is refused with its own text, and nothing is registered."""
    taxpayer, victim = make.taxpayer(), make.taxpayer()
    row = connecting(erp, taxpayer.tin)
    form = form_of(opened(row, ticket_for(row, portal)))
    for sent, name in (
        (ticket_for(row, with_scopes("RegistryAPI:permissions")), "other_portal"),
        (ticket_for(row, portal, taxpayer=victim.tin), "other_taxpayer"),  # a phished link
    ):
        assert_refused(opened(row, sent), name)
    attackers = connecting(StandInErp(erp.auth_url), taxpayer.tin)
    assert_refused(decide(attackers, form, "approve"), "other_request")  # the page was for one key
    permission = asked(new_agent(), taxpayer.tin)
    assert_refused(opened(permission, ticket_for(permission, portal)), "other_portal")
    at, by = now(), Author("x")
    for decide_it, wrong, says in (
        (approve_permission_request, row, "Who issues credentials decides that"),
        (decline_permission_request, row, "Who issues credentials decides that"),
        (approve_connection, permission, "Who grants permissions decides that"),
        (decline_connection, permission, "Who grants permissions decides that"),
    ):
        with pytest.raises(ServiceError, match=says):
            decide_it(request=wrong, evidence=SIGNED_IN, by=by, at=at)
    for unknown, says in ((UNKNOWN, "There is no taxpayer"), (taxpayer.tin, "not active")):
        asked_of = connecting(StandInErp(erp.auth_url), unknown, reference="x")
        taxpayer.is_active = False
        taxpayer.save()
        with pytest.raises(ServiceError, match=says):
            approve_connection(request=asked_of, evidence=SIGNED_IN, by=by, at=at)
    settings.EVIDENCE_REQUIRED = True
    with pytest.raises(ServiceError, match="Say who approved it"):
        approve_connection(request=connecting(erp, victim.tin), by=by, at=at)
    assert not SystemUser.objects.filter(taxpayer__in=(taxpayer, victim)).exists()
    assert not GrantedPermission.objects.exists()


def test_less_is_approved_and_declined_is_told(erp: StandInErp, portal: KeyErp) -> None:
    tin = make.taxpayer().tin
    row, other = connecting(erp, tin), connecting(erp, tin, name="Other")
    form = form_of(opened(row, ticket_for(row, portal)))
    decide(row, form, "less", codes=["InvoicingAPI"], until="2037-06-30")
    assert (poll(erp, row)["connected"] or {})["expires_at"][:10] == "2037-06-30"
    decide(other, form_of(opened(other, ticket_for(other, portal))), "decline")
    assert poll(erp, other)["state"] == "declined"


def test_the_portal_staff_and_operators_decide_by_their_doors(erp: StandInErp) -> None:
    taxpayer = make.taxpayer()
    rows = [connecting(erp, taxpayer.tin, name=f"ERP {n}") for n in range(3)]
    client = new_portal("RegistryAPI:credentials")
    listed = assert_ok(client.get(f"/permission-requests?taxpayer={taxpayer.tin}"))["items"]
    assert [(one["kind"], one["key_fingerprint"], one["intermediary"]) for one in listed] == [
        ("connection", erp.fingerprint, None)
    ] * 3
    path, sent = f"/permission-requests/{rows[0].pk}", {"taxpayer": taxpayer.tin}
    done = assert_ok(
        client.post(f"{path}/approve-connection", {**sent, "evidence": SIGN_IN}, If_Match="*")
    )
    assert (done["state"], done["connected_client_id"][:3]) == ("approved", "ci_")
    officer = staff_client("security officer")
    assert "ERP 1" in staff_text(officer.get(list_url(PermissionRequest)))
    assert erp.fingerprint in staff_text(officer.get(page_url(rows[1])))
    form = {"codes": ["InvoicingAPI"], "evidence": "F-7"}
    officer.post(task_url(rows[1], "approve_connection"), form)
    registrar = staff_text(staff_client("registrar", "farid").get(page_url(rows[2])))
    assert ("Approve" in registrar, "Decline" in registrar) == (False, False)
    assert run("approve_connection", str(rows[2].pk), "--paper-form", "F-8")[0] == 0
    for row, kind in zip(rows, ("approved_by", "paper_form", "paper_form"), strict=True):
        row.refresh_from_db()
        assert (row.state, kind in row.evidence) == ("approved", True)
    assert "System user" in staff_text(officer.get(page_url(rows[1])))


def test_a_developer_plays_it_in_the_sandbox(erp: StandInErp, settings: Settings) -> None:
    """Every address comes from an answer before; what is approved ends in a day."""
    make_sandbox(now())
    portal = Client().get("/sandbox.json").json()["portal"]
    asked = body_of(ask(erp, portal["taxpayer"]))
    browser, path = Client(), asked["confirm_url"].removeprefix(configured.AUTH_URL)
    opened_at = browser.get(path)
    assert opened_at["Location"].startswith(f"{portal['address']}?request={asked['id']}")
    page = browser.get(path, follow=True)
    assert erp.fingerprint in text_of(page)
    assert re.search(r"Until: \d.* as the taxpayer: None\.", text_of(page))
    browser.post(path, {**form_of(page), "decision": "approve"})
    connected = body_of(call(erp, "GET", f"{ASK}/{asked['id']}"))["connected"]
    assert connected["expires_at"] < (now() + timedelta(days=1, seconds=1)).isoformat()
    assert post(urlencode(erp.login_form(connected["client_id"]))).status_code == 200
    # Its key is public: so it decides for no other taxpayer, and nowhere else.
    key = ECKey.import_key(portal["private_jwk"]).as_pem(private=True).decode()
    right, other = portal["taxpayer"], make.taxpayer().tin
    for environment, tin in (("test", other), ("live", right), ("test", right)):
        settings.ENVIRONMENT = environment
        row = make.permission_request(tin=tin, valid_until=now() + timedelta(hours=2))
        claims = {"taxpayer": tin, "request": str(row.pk), **PERSON}
        signs = portal["client_id"], portal["private_jwk"]["kid"], portal["confirm_url"]
        page = opened(row, new_ticket(key, *signs, **claims))
        if (environment, tin) == ("test", right):
            done = decide(row, form_of(page), "less", codes=[VIEW])
            assert "The request is approved." in text_of(done)
        else:
            assert_refused(page, "not_a_portal")
    assert Client().get("/sandbox/portal?request=//evil.example.org").status_code == 400
