"""`/api/v1/credentials/current`: a client reads of itself, and ends the secret of its token."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.urls import reverse

from taxpayers.credentials import hash_secret, hint_of
from taxpayers.models import Change, Credential, SystemUser, Taxpayer
from tests.introspection.api import INACTIVE, Api, claims_of, token_of
from tests.self_service.calls import (
    CREDENTIALS,
    REVOKE_LAST,
    assert_answer,
    assert_error,
    call,
    second_secret,
    text_of,
)
from tests.support import make
from tests.support.answers import body_of
from tests.support.at_once import at_once
from tests.support.erp import Erp, new_erp
from tests.support.factories import VIEW
from tests.support.moments import now
from tests.support.outages import writing_fails
from tests.support.staff import staff_client, text_of as text_of_page

ALLOW = "GET, HEAD, DELETE"
DAY = timedelta(days=1)
LAST = "This is the last live secret of this client"


def end(token: str, path: str = CREDENTIALS) -> HttpResponse:
    return call("DELETE", path, token)


def live_hints() -> set[str]:
    return set(Credential.objects.filter(revoked_at=None).values_list("hint", flat=True))


def test_the_secret_of_the_token_ends_and_the_answer_names_what_still_works(
    erp: Erp, api: Api
) -> None:
    leaked = second_secret(erp)
    used, same, other = token_of(leaked), token_of(leaked), token_of(erp)
    answer = end(used)
    assert [body_of(api.introspect(token)) for token in (used, same)] == [INACTIVE] * 2
    assert body_of(api.introspect(other))["active"] is True
    revoked = Credential.objects.exclude(revoked_at=None).get()
    left = Credential.objects.get(revoked_at=None)
    assert revoked.revoked_at is not None
    body = assert_answer(answer, 200, ALLOW)
    description = body.pop("description")
    assert body == {
        "revoked": {
            "hint": hint_of(leaked.client_secret),
            "revoked_at": text_of(revoked.revoked_at),
        },
        "live_secrets": [
            {
                "hint": hint_of(erp.client_secret),
                "state": "live",
                "issued_this_token": False,
                "created_at": text_of(left.created_at),
                "expires_at": text_of(left.expires_at),
                "revoked_at": None,
                "last_used_at": text_of(left.system_user.usage.window_started_at),
                "allowed_networks": [],
            }
        ],
    }
    assert "Log in with another secret: the latest one is valid until 20" in description
    assert leaked.login().status_code == 400
    assert "was revoked on" in body_of(leaked.login())["error_description"]
    assert erp.login().status_code == 200


def test_the_history_has_who_when_what_and_why(erp: Erp) -> None:
    leaked = second_secret(erp)
    token = token_of(leaked)
    answer = call("DELETE", CREDENTIALS, token, REMOTE_ADDR="192.0.2.9")
    (change,) = Change.objects.all()
    hint = f"\u2026{hint_of(leaked.client_secret)}"
    assert (change.action, change.object_type) == ("revoke_secret", "systemuser")
    assert (change.by, change.address) == (f"{erp.client_id} (client)", "192.0.2.9")
    assert change.object_id == str(erp.system_user.pk)
    assert change.before == {"secret": hint, "credential": "secret", "secret_revoked_at": None}
    assert change.after["secret"] == hint
    assert change.after["secret_revoked_at"]
    assert change.reason == (
        "Revoked by the client itself, with the token of login"
        f" {claims_of(token)['jti']}. Reference: {answer['correlationId']}"
    )
    page = text_of_page(staff_client("auditor").get(reverse("admin:taxpayers_change_report")))
    assert f"{erp.client_id} (client)" in page
    assert "Revoked a secret" in page


def test_the_last_live_secret_is_spared_unless_that_is_meant(erp: Erp) -> None:
    token = token_of(erp)
    for path in (CREDENTIALS, f"{CREDENTIALS}?revoke_last=false", f"{CREDENTIALS}?revoke_last="):
        assert_error(end(token, path), 409, "conflict", LAST, ALLOW)
    assert "?revoke_last=true" in body_of(end(token))["error_description"]
    assert live_hints() == {hint_of(erp.client_secret)}
    assert not Change.objects.exists()
    assert erp.login().status_code == 200
    body = assert_answer(end(token, REVOKE_LAST), 200, ALLOW)
    assert body["live_secrets"] == []
    assert "No valid secret is left" in body["description"]
    assert "Ask the tax authority" in body["description"]
    assert live_hints() == set()


@pytest.mark.parametrize("state", ["expired", "revoked", "another client's"])
def test_only_a_live_secret_of_this_client_counts_as_another_one(erp: Erp, state: str) -> None:
    at, day = datetime.now(UTC), timedelta(days=1)
    if state == "expired":
        second_secret(erp, created_at=at - 2 * day, expires_at=at - day)
    elif state == "revoked":
        second_secret(erp, slot=None, revoked_at=at)
    else:
        new_erp(taxpayer=erp.system_user.taxpayer)
    assert_error(end(token_of(erp)), 409, "conflict", LAST, ALLOW)


def test_an_unclear_confirmation_revokes_nothing(erp: Erp) -> None:
    second_secret(erp)
    token = token_of(erp)
    for meant in ("yes", "1", "TRUE", "true&revoke_last=true", "%74rue&x=%zz"):
        answer = end(token, f"{CREDENTIALS}?revoke_last={meant}")
        assert (answer.status_code, body_of(answer)["error"]) == (400, "invalid_request")
    assert len(live_hints()) == 2


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_recorded_is_not_done(erp: Erp) -> None:
    token = token_of(second_secret(erp))
    with writing_fails("changes"):
        answer = end(token)
    assert answer.status_code in (500, 503)
    assert len(live_hints()) == 2


@pytest.mark.django_db(transaction=True)
def test_two_secrets_that_end_each_other_at_once_leave_one(erp: Erp) -> None:
    tokens = [token_of(erp), token_of(second_secret(erp))]
    answers: list[Any] = at_once(*(partial(end, token) for token in tokens))
    outcomes = sorted(answer.status_code for answer in answers)
    # SQLite has one writer: the one that finds the other writing may be told to try again.
    assert outcomes[0] == 200
    assert outcomes[1] in ((409,) if connection.vendor == "postgresql" else (409, 503))
    assert len(live_hints()) == 1


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
        make.credential(
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
    assert other.client_id not in credentials(token_of(erp)).content.decode()
    assert len(body_of(credentials(token_of(erp)))["secrets"]) == 1


def test_a_client_without_a_limit_or_whose_window_is_over(erp: Erp) -> None:
    token, usage = token_of(erp), type(SystemUser.objects.get().usage).objects
    usage.update(window_started_at=now() - timedelta(minutes=5), used=12)
    whole = {"logins_per_minute": 12, "remaining": 12, "resets_at": None}
    assert body_of(credentials(token))["rate_limit"] == whole
    unlimited = body_of(credentials(token_of(new_erp(logins_per_minute=0))))["rate_limit"]
    assert (unlimited["logins_per_minute"], unlimited["remaining"]) == (0, None)


def test_the_limits_are_shown_but_not_the_other_taxpayers(intermediary: Erp) -> None:
    tin = str(make.permission(intermediary=intermediary.role).taxpayer.identifier)
    SystemUser.objects.update(allowed_permissions=VIEW, allowed_taxpayers=f"C0000000000 {tin}")
    Credential.objects.update(allowed_networks="127.0.0.0/8 2001:db8::/32")
    answer = credentials(token_of(intermediary, on_behalf_of=tin))
    shown = body_of(answer)
    assert (shown["allowed_permissions"], shown["is_limited_to_taxpayers"]) == ([VIEW], True)
    assert shown["secrets"][0]["allowed_networks"] == ["127.0.0.0/8", "2001:db8::/32"]
    assert "C0000000000" not in answer.content.decode()
