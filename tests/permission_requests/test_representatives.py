"""A taxpayer's own systems see who acts for it, end that, and read who got a token for it."""

from datetime import timedelta
from typing import Any

import pytest

from taxpayers.models import Change, GrantedPermission
from taxpayers.services import Author
from tests.introspection.api import claims_of, token_of
from tests.management_api.portal import send
from tests.permission_requests.parties import new_agent
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import GrantedPermissionFactory, stored_login
from tests.support.moments import now
from tokens.login_events.counting import note_first_uses
from tokens.models import CountingMark

pytestmark = pytest.mark.django_db
WHO, STATEMENT = "/api/v1/representatives", "/api/v1/statement"


@pytest.fixture
def agent() -> Erp:
    return new_agent()


@pytest.fixture
def permission(erp: Erp, agent: Erp) -> Any:
    return GrantedPermissionFactory.create(
        taxpayer=erp.system_user.taxpayer, intermediary=agent.role
    )


def test_who_acts_for_it_since_when_and_last_used(
    erp: Erp, agent: Erp, permission: GrantedPermission
) -> None:
    GrantedPermissionFactory.create()  # of another taxpayer
    GrantedPermissionFactory.create(taxpayer=permission.taxpayer, revoked_at=now())
    assert agent.login(on_behalf_of=erp.tin).status_code == 200
    body = body_of(send("GET", WHO, token_of(erp)))
    (one,) = body["representatives"]
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
    other: Any = GrantedPermissionFactory.create()
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
    assert [one["reference"] for one in body["tokens"]] == [
        claims_of(other)["jti"],
        claims_of(token)["jti"],
    ]
    assert (body["tokens"][0]["intermediary"], body["tokens"][1]["intermediary"]) == (
        agent.tin,
        None,
    )
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
    used: Any = GrantedPermissionFactory.create(**pair)
    later: Any = GrantedPermissionFactory.create(**pair, valid_from=now() - timedelta(minutes=7))
    unused: Any = GrantedPermissionFactory.create(intermediary=agent.role)
    by, first = Author("x"), now() - timedelta(minutes=9)
    for minutes, reason in ((9, ""), (8, ""), (8, "invalid_scope")):
        at = now() - timedelta(minutes=minutes)
        stored_login(at, reason, subject=erp.tin, actor=agent.tin)
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
