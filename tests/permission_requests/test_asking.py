"""An intermediary asks with its own token, polls and withdraws; and learns nothing by asking."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from taxpayers.models import Change, GrantedPermission, PermissionRequest
from tests.introspection.api import token_of
from tests.management_api.portal import send
from tests.permission_requests.parties import (
    ASK,
    RETURN,
    ask,
    look_of,
    make_late,
    new_agent,
)
from tests.support.answers import body_of
from tests.support.erp import new_erp
from tests.support.factories import SUBMIT, VIEW, GrantedPermissionFactory, TaxpayerFactory

pytestmark = pytest.mark.django_db
UNKNOWN = "C7770000001"  # no such taxpayer


def test_it_asks_polls_lists_and_withdraws(settings: Settings) -> None:
    agent, taxpayer = new_agent(), TaxpayerFactory.create()
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
    assert [c.action for c in Change.objects.filter(object_id=body["id"]).order_by("pk")] == [
        "ask_permission",
        "withdraw_permission_request",
    ]
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
    permission = GrantedPermissionFactory.create(intermediary=agent.role)
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
    granted = GrantedPermissionFactory.create(intermediary=agent.role).taxpayer
    known = TaxpayerFactory.create(), TaxpayerFactory.create(is_active=False), granted
    tins = [*(row.tin for row in known), UNKNOWN, "C7770000002"]
    assert len({look_of(lambda tin: ask(agent, tin, token), tin) for tin in tins}) == 1
    assert GrantedPermission.objects.count() == 1
