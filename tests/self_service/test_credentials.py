"""`GET /api/v1/credentials/current`: what a client sees of itself, and what it never sees."""

from datetime import UTC, datetime, timedelta

import pytest
from django.http import HttpResponse
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from taxpayers.credentials import hash_secret, hint_of
from taxpayers.models import Credential, SystemUser, Taxpayer
from taxpayers.services import Author, change_system_user, revoke_credential
from tests.introspection.api import token_of
from tests.self_service.calls import CREDENTIALS, assert_answer, call, second_secret, text_of
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import (
    VIEW,
    CredentialFactory,
    GrantedPermissionFactory,
    SystemUserFactory,
)

pytestmark = pytest.mark.django_db
ALLOW = "GET, HEAD, DELETE"
DAY = timedelta(days=1)


def now() -> datetime:
    return datetime.now(UTC)


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


def test_neither_a_secret_nor_its_hash_is_in_the_answer(erp: Erp) -> None:
    answer = credentials(token_of(erp)).content.decode()
    assert erp.client_secret not in answer
    assert hash_secret(erp.client_secret) not in answer
    assert Credential.objects.get().lookup not in answer


def test_it_shows_which_secret_issued_the_token_and_when_each_was_used(erp: Erp) -> None:
    other = second_secret(erp)
    used = token_of(other)
    second, first = body_of(credentials(used))["secrets"]  # the newest first
    assert (first["hint"], second["hint"]) == tuple(hint_of(e.client_secret) for e in (erp, other))
    assert (first["issued_this_token"], second["issued_this_token"]) == (False, True)
    assert first["last_used_at"] is None
    assert second["last_used_at"] is not None


def test_secrets_that_ended_within_30_days_are_shown_behind_the_live_ones(erp: Erp) -> None:
    user = erp.system_user

    def ended(clear_end: str, *, expires: timedelta, revoked: timedelta | None = None) -> None:
        CredentialFactory.create(
            system_user=user,
            slot=None,
            hint=clear_end,
            created_at=now() - 400 * DAY,
            expires_at=now() + expires,
            revoked_at=None if revoked is None else now() + revoked,
        )

    ended("exp1", expires=-29 * DAY)
    ended("exp2", expires=-31 * DAY)
    ended("rev1", expires=DAY, revoked=-29 * DAY)
    ended("rev2", expires=DAY, revoked=-31 * DAY)
    shown = [(s["hint"], s["state"]) for s in body_of(credentials(token_of(erp)))["secrets"]]
    live = (hint_of(erp.client_secret), "live")
    assert shown == [live, ("rev1", "revoked"), ("exp1", "expired")]


def test_no_number_of_ended_secrets_hides_a_live_one(erp: Erp) -> None:
    for _ in range(30):
        CredentialFactory.create(
            system_user=erp.system_user, slot=None, created_at=now() - 9 * DAY, revoked_at=now()
        )
    secrets = body_of(credentials(token_of(erp)))["secrets"]
    assert (len(secrets), secrets[0]["state"]) == (20, "live")


def test_nothing_of_another_client_of_the_same_taxpayer_is_shown(erp: Erp) -> None:
    other = new_erp(taxpayer=erp.system_user.taxpayer)
    text = credentials(token_of(erp)).content.decode()
    assert other.client_id not in text
    assert len(body_of(credentials(token_of(erp)))["secrets"]) == 1


def test_a_token_on_behalf_of_another_taxpayer_shows_the_client_itself(intermediary: Erp) -> None:
    tin = GrantedPermissionFactory.create(intermediary=intermediary.role).taxpayer.tin
    body = body_of(credentials(token_of(intermediary, on_behalf_of=tin)))
    assert body["taxpayer"] == {"tin": intermediary.tin}
    assert body["client_id"] == intermediary.client_id
    assert tin not in str(body)


def test_it_is_the_registry_of_now_not_of_the_login(erp: Erp) -> None:
    token = token_of(erp)
    change_system_user(
        system_user=erp.system_user,
        name="Renamed",
        logins_per_minute=3,
        reason="a test",
        by=Author("officer"),
        at=now(),
    )
    body = body_of(credentials(token))
    assert (body["name"], body["rate_limit"]["logins_per_minute"]) == ("Renamed", 3)
    assert body["rate_limit"]["remaining"] == 2


def test_an_unlimited_client_has_no_number_left(db: None) -> None:
    unlimited = body_of(credentials(token_of(new_erp(logins_per_minute=0))))["rate_limit"]
    assert (unlimited["logins_per_minute"], unlimited["remaining"]) == (0, None)


def test_a_window_that_is_over_leaves_the_whole_limit(erp: Erp) -> None:
    token = token_of(erp)
    user = SystemUser.objects.get()
    type(user.usage).objects.update(window_started_at=now() - timedelta(minutes=5), used=12)
    assert body_of(credentials(token))["rate_limit"] == {
        "logins_per_minute": 12,
        "remaining": 12,
        "resets_at": None,
    }


def test_looking_counts_no_login(erp: Erp) -> None:
    token = token_of(erp)
    before = body_of(credentials(token))
    assert body_of(credentials(token)) == before


@pytest.mark.parametrize(
    ("forwarded", "seen"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, 10.0.0.9", "203.0.113.7"),
        (None, "10.0.0.8"),
    ],
)
def test_the_address_is_read_as_trusted_proxies_report_it(
    erp: Erp, settings: Settings, forwarded: str | None, seen: str
) -> None:
    token = token_of(erp)
    settings.TRUSTED_PROXIES = ["10.0.0.0/8"]
    headers = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    answer = call("GET", CREDENTIALS, token, REMOTE_ADDR="10.0.0.8", **headers)
    assert body_of(answer)["source_address"] == seen


def test_nobody_else_is_believed_about_the_address(erp: Erp) -> None:
    forged = {"HTTP_X_FORWARDED_FOR": "203.0.113.7"}
    answer = call("GET", CREDENTIALS, token_of(erp), REMOTE_ADDR="192.0.2.9", **forged)
    assert body_of(answer)["source_address"] == "192.0.2.9"


@pytest.mark.parametrize("clients", [1, 30])
def test_it_takes_three_queries(
    erp: Erp, clients: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(clients):
        CredentialFactory.create(
            system_user=erp.system_user, slot=None, revoked_at=now(), expires_at=now() + DAY
        )
        SystemUserFactory.create(taxpayer=erp.system_user.taxpayer)
    token = token_of(erp)
    with django_assert_num_queries(3):
        assert credentials(token).status_code == 200


def test_a_token_whose_secret_was_revoked_opens_nothing_and_says_when(erp: Erp) -> None:
    token = token_of(erp)
    at = now()
    revoke_credential(
        credential=Credential.objects.get(), reason="leaked", by=Author("officer"), at=at
    )
    answer = credentials(token)
    assert answer.status_code == 401
    assert "was revoked on " in body_of(answer)["error_description"]
    assert "Log in with another secret" in body_of(answer)["error_description"]


def test_the_limits_are_shown_but_not_the_other_taxpayers(intermediary: Erp) -> None:
    tin = str(GrantedPermissionFactory.create(intermediary=intermediary.role).taxpayer.identifier)
    SystemUser.objects.update(allowed_permissions=VIEW, allowed_taxpayers=f"C0000000000 {tin}")
    Credential.objects.update(allowed_networks="127.0.0.0/8 2001:db8::/32")
    answer = credentials(token_of(intermediary, on_behalf_of=tin))
    shown = body_of(answer)
    assert (shown["allowed_permissions"], shown["is_limited_to_taxpayers"]) == ([VIEW], True)
    assert shown["secrets"][0]["allowed_networks"] == ["127.0.0.0/8", "2001:db8::/32"]
    assert "C0000000000" not in answer.content.decode()
