"""`GET /api/v1/credentials/current`: what a client sees of itself, and what it never sees."""

from datetime import timedelta

import pytest
from django.http import HttpResponse

from taxpayers.credentials import hash_secret, hint_of
from taxpayers.models import Credential, SystemUser, Taxpayer
from tests.introspection.api import token_of
from tests.self_service.calls import CREDENTIALS, assert_answer, call, text_of
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import VIEW, CredentialFactory, GrantedPermissionFactory
from tests.support.moments import now

pytestmark = pytest.mark.django_db
ALLOW = "GET, HEAD, DELETE"
DAY = timedelta(days=1)


def credentials(token: str) -> HttpResponse:
    return call("GET", CREDENTIALS, token)


def test_the_whole_answer(erp: Erp) -> None:
    Taxpayer.objects.update(tin="C2584563222", rob="202001234567")
    end = now() + 90 * DAY
    SystemUser.objects.update(name="ERP of the warehouse", expires_at=end)
    token = token_of(erp)
    secret, user = Credential.objects.get(), SystemUser.objects.get()
    began = user.usage.window_started_at
    assert assert_answer(credentials(token), 200, ALLOW) == {
        "client_id": erp.client_id,
        "name": "ERP of the warehouse",
        "taxpayer": {"tin": "C2584563222", "rob": "202001234567"},
        "scopes": ["InvoicingAPI"],
        "expires_at": text_of(end),
        "allowed_permissions": [],
        "is_limited_to_taxpayers": False,
        "only_on_behalf": False,
        "secrets": [
            {
                "hint": hint_of(erp.client_secret),
                "state": "live",
                "issued_this_token": True,
                "created_at": text_of(secret.created_at),
                "expires_at": text_of(secret.expires_at),
                "revoked_at": None,
                "last_used_at": text_of(began),
                "allowed_networks": [],
            }
        ],
        "rate_limit": {
            "logins_per_minute": 12,
            "remaining": 11,
            "resets_at": text_of(began + timedelta(seconds=60)),
        },
        "source_address": "127.0.0.1",
        "environment": "test",
    }
    shown = credentials(token).content.decode()
    assert shown == credentials(token).content.decode(), "looking counts no login"
    assert not [
        hidden for hidden in (erp.client_secret, hash_secret(erp.client_secret)) if hidden in shown
    ]


def test_a_secret_is_not_used_before_it_was_created(erp: Erp) -> None:
    """Though its last use is that of the minute, which began with a login before."""
    token_of(erp)
    erp.system_user.credentials.update(created_at=now() + timedelta(seconds=2))
    (shown,) = body_of(credentials(token_of(erp)))["secrets"]
    assert shown["created_at"] <= shown["last_used_at"]


def test_secrets_that_ended_within_30_days_are_shown_behind_the_live_ones(erp: Erp) -> None:
    def ended(hint: str, *, expires: timedelta, revoked: timedelta | None = None) -> None:
        CredentialFactory.create(
            system_user=erp.system_user,
            slot=None,
            hint=hint,
            created_at=now() - 400 * DAY,
            expires_at=now() + expires,
            revoked_at=None if revoked is None else now() + revoked,
        )

    ended("exp1", expires=-29 * DAY)
    ended("exp2", expires=-31 * DAY)
    ended("rev1", expires=DAY, revoked=-29 * DAY)
    ended("rev2", expires=DAY, revoked=-31 * DAY)
    token, live = token_of(erp), (hint_of(erp.client_secret), "live")
    shown = [(s["hint"], s["state"]) for s in body_of(credentials(token))["secrets"]]
    assert shown == [live, ("rev1", "revoked"), ("exp1", "expired")]
    for number in range(30):
        ended(f"{number:04}", expires=DAY, revoked=-DAY)
    secrets = body_of(credentials(token))["secrets"]
    assert (len(secrets), secrets[0]["state"]) == (20, "live"), "no number of them hides a live one"


def test_nothing_of_another_client_of_the_same_taxpayer_is_shown(erp: Erp) -> None:
    other = new_erp(taxpayer=erp.system_user.taxpayer)
    text = credentials(token_of(erp)).content.decode()
    assert other.client_id not in text
    assert len(body_of(credentials(token_of(erp)))["secrets"]) == 1


def test_a_client_without_a_limit_or_whose_window_is_over(erp: Erp) -> None:
    token, usage = token_of(erp), type(SystemUser.objects.get().usage).objects
    usage.update(window_started_at=now() - timedelta(minutes=5), used=12)
    whole = {"logins_per_minute": 12, "remaining": 12, "resets_at": None}
    assert body_of(credentials(token))["rate_limit"] == whole
    unlimited = body_of(credentials(token_of(new_erp(logins_per_minute=0))))["rate_limit"]
    assert (unlimited["logins_per_minute"], unlimited["remaining"]) == (0, None)


def test_the_limits_are_shown_but_not_the_other_taxpayers(intermediary: Erp) -> None:
    tin = str(GrantedPermissionFactory.create(intermediary=intermediary.role).taxpayer.identifier)
    SystemUser.objects.update(allowed_permissions=VIEW, allowed_taxpayers=f"C0000000000 {tin}")
    Credential.objects.update(allowed_networks="127.0.0.0/8 2001:db8::/32")
    answer = credentials(token_of(intermediary, on_behalf_of=tin))
    shown = body_of(answer)
    assert (shown["allowed_permissions"], shown["is_limited_to_taxpayers"]) == ([VIEW], True)
    assert shown["secrets"][0]["allowed_networks"] == ["127.0.0.0/8", "2001:db8::/32"]
    assert "C0000000000" not in answer.content.decode()
