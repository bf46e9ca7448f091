"""`POST /connect/introspect`: the whole answer, and every reason for an inactive one (RFC 7662)."""

from datetime import timedelta
from typing import Any

import jwt
import pytest
from django.db.models import F
from django.http import HttpResponse
from django.test import Client
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import KeySet
from msgspec.structs import replace
from pytest_django.fixtures import Settings

from taxpayers.facts.values import Facts
from taxpayers.models import StatusIndex, SystemUser
from tests.endpoint.test_rules import AT, CLIENT, OTHER, OWN, PERMISSION, REPRESENTED, SECRET
from tests.introspection.api import (
    INACTIVE,
    Api,
    assert_headers,
    claims_of,
    forged,
    new_api,
    revoke,
    token_of,
)
from tests.introspection.test_callers import assert_error
from tests.support import make
from tests.support.answers import body_of
from tests.support.erp import Erp
from tests.support.moments import now, why
from tests.support.queries import statements_sent
from tokens.access_tokens.status import TokenFacts, status_of
from tokens.access_tokens.verification import AccessToken
from tokens.answers.accept import choose_media_type
from tokens.keys.ring import ALGORITHMS
from tokens.keys.signer import current_key_ring
from tokens.keys.store import stop_compromised_key


def assert_answer(response: HttpResponse, body: dict[str, Any]) -> None:
    assert (response.status_code, response.reason_phrase) == (200, "OK")
    assert_headers(response)
    assert body_of(response) == body


@pytest.fixture
def acting(intermediary: Erp) -> tuple[str, str]:
    """The taxpayer that an intermediary acts for, and its token."""
    tin = str(make.permission(intermediary=intermediary.role).taxpayer.identifier)
    return tin, token_of(intermediary, on_behalf_of=tin)


def test_an_active_token_is_answered_with_all_that_it_says(api: Api, erp: Erp) -> None:
    token = token_of(erp)
    claims = claims_of(token)
    assert_answer(api.introspect(token), {"active": True, "token_type": "Bearer", **claims})
    assert set(claims) == {
        *("iss", "sub", "aud", "client_id", "jti", "iat", "exp", "scope", "taxpayer"),
        "status",
    }


@pytest.mark.usefixtures("later_in_the_minute")
def test_an_introspection_is_one_statement_and_changes_nothing(
    api: Api, erp: Erp, acting: tuple[str, str]
) -> None:
    for token in (token_of(erp), acting[1], "x"):
        with statements_sent() as words:
            api.introspect(token)
        assert [word for word in words if word not in ("SAVEPOINT", "RELEASE")] == ["SELECT"]


def test_a_token_that_is_not_ours_is_inactive_and_nothing_more(api: Api, erp: Erp) -> None:
    """Each kind of them, and one that has expired: tests/tokens/test_access_tokens.py."""
    for token in (forged(token_of(erp)), "a.b.c"):
        assert_answer(api.introspect(token), INACTIVE)


def test_a_token_of_another_audience_is_inactive(erp: Erp, api: Api, settings: Settings) -> None:
    token = token_of(erp)
    settings.SCOPES = {
        **settings.SCOPES,
        "Reports": {"description": "Reports", "audience": "ReportsAPI"},
    }
    reports = new_api("Reports", "ReportsAPI")
    assert_answer(reports.introspect(token), INACTIVE)
    assert body_of(api.introspect(token))["active"] is True
    SystemUser.objects.update(scopes="InvoicingAPI Reports")
    both = token_of(erp, scope="InvoicingAPI Reports")
    assert body_of(reports.introspect(both))["aud"] == ["InvoicingAPI", "ReportsAPI"]
    SystemUser.objects.update(scopes="Reports")  # a scope that the client may not have any more
    assert_answer(reports.introspect(both), INACTIVE)


@pytest.mark.parametrize("column", ["system_user_id", "secret_id"])
def test_a_token_whose_index_is_that_of_another_client_or_secret_is_inactive(
    column: str, api: Api, erp: Erp
) -> None:
    """As after a backup was restored."""
    token = token_of(erp)
    StatusIndex.objects.update(**{column: F(column) + 1})
    assert_answer(api.introspect(token), INACTIVE)


def test_a_token_of_a_compromised_key_is_inactive_before_the_key_ring_is_read_again(
    api: Api, erp: Erp
) -> None:
    token = token_of(erp)
    key = current_key_ring(now()).signer(now())
    stop_compromised_key(kid=key.kid, alg="ES256", **why())
    assert current_key_ring(now()).find(key.kid) == key, "this process has not read it yet"
    assert_answer(api.introspect(token), INACTIVE)


JSON, SIGNED = "application/json", "application/token-introspection+jwt"
OFFERED = (JSON, SIGNED)


def signed(api: Api, token: str) -> HttpResponse:
    response = api.introspect(token, headers={"accept": SIGNED})
    assert response.status_code == 200
    assert_headers(response, SIGNED)
    return response


def verified_by_joserfc(response: HttpResponse) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = KeySet.import_key_set(body_of(Client().get("/.well-known/jwks.json")))  # type: ignore[arg-type]
    token = joserfc_jwt.decode(response.content.decode(), keys, algorithms=list(ALGORITHMS))
    return token.header, token.claims


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_the_signed_answer_has_these_members_only(
    api: Api, erp: Erp, settings: Settings, alg: str
) -> None:
    settings.SIGNING_ALGORITHM = alg
    token = token_of(erp)
    header, claims = verified_by_joserfc(signed(api, token))
    assert header == {
        "typ": "token-introspection+jwt",
        "alg": alg,
        "kid": jwt.get_unverified_header(token)["kid"],
    }
    iat = claims.pop("iat")
    assert abs(iat - claims_of(token)["iat"]) <= 60
    assert claims == {
        "iss": "http://127.0.0.1:8000",
        "aud": api.client_id,
        "token_introspection": {"active": True, "token_type": "Bearer", **claims_of(token)},
    }


def test_of_an_inactive_token_it_reveals_nothing(api: Api, erp: Erp) -> None:
    token = token_of(erp)
    revoke(erp, token)
    _header, claims = verified_by_joserfc(signed(api, token))
    assert claims["token_introspection"] == INACTIVE
    assert set(claims) == {"iss", "aud", "iat", "token_introspection"}


def test_a_caller_that_accepts_neither_form_is_told_so(api: Api, erp: Erp) -> None:
    answer = api.introspect(token_of(erp), headers={"accept": "text/html"})
    assert_error(answer, 406, "invalid_request", f"neither {JSON} nor {SIGNED}")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", JSON),
        (" ", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        (SIGNED, SIGNED),
        (SIGNED.upper(), SIGNED),
        (f"{SIGNED}, */*", JSON),
        (f"{SIGNED}, */*;q=0.5", SIGNED),
        (f"{JSON};q=0.5, {SIGNED};q=0.9", SIGNED),
        (f"{JSON};q=0.9, {SIGNED};q=0.5", JSON),
        (f"{JSON};q=0.9,{SIGNED};q=0.9", JSON),
        (f"{JSON};q=1, {SIGNED}", JSON),  # without a quality it is 1
        (f"{JSON};q=0, */*", SIGNED),
        (f"{JSON};q=0, {SIGNED};q=0", None),
        (f"application/*;q=0.2, {SIGNED} ; q = 0.3", SIGNED),
        (f"{JSON}; charset=utf-8", JSON),
        ("text/html", None),
        ("text/*, image/png", None),
        ("*/*;q=0", None),
        ("nonsense", None),
        (",,;;=", None),
        (f"{SIGNED};q=x, {JSON};q=0.1", JSON),
        (f"{SIGNED};q=2", None),
        (f"{SIGNED};q=nan", None),
        (f"{JSON};q=0.1, {JSON};q=0.8, {SIGNED};q=0.5", JSON),
    ],
)
def test_the_form_that_a_caller_likes_best_is_chosen(accept: str, chosen: str | None) -> None:
    assert choose_media_type(accept, OFFERED) == chosen


SCOPES = ("InvoicingAPI", "ReportingAPI", "Other")
OWN_FACTS = Facts(CLIENT, SECRET)
ON_BEHALF = Facts(CLIENT, SECRET, REPRESENTED)
TOKEN = AccessToken(
    subject=OWN,
    actor=None,
    client_id=CLIENT.client_id,
    jti="a-jti",
    scopes=("InvoicingAPI",),
    permissions=(),
    issued_at=AT,
    expires_at=AT + timedelta(hours=1),
)
FOR_OTHER = replace(TOKEN, subject=OTHER, actor=str(OWN), permissions=("documents:view",))


def status(token: AccessToken, login: Facts | None, **facts: bool) -> str:
    known = TokenFacts(login, **({"has_index": True} | facts))
    return status_of(token, known, known_scopes=SCOPES, at=AT)


def client(**changes: Any) -> Facts:
    return replace(OWN_FACTS, client=replace(CLIENT, **changes))


def granted(*codes: str) -> Facts:
    permission = replace(PERMISSION, codes=codes)
    return replace(ON_BEHALF, represented=replace(REPRESENTED, permissions=(permission,)))


@pytest.mark.parametrize(
    ("token", "login"),
    [
        (TOKEN, OWN_FACTS),
        (replace(TOKEN, scopes=("InvoicingAPI", "ReportingAPI")), OWN_FACTS),
        (FOR_OTHER, ON_BEHALF),
        (FOR_OTHER, granted("documents:view")),
        (replace(FOR_OTHER, permissions=()), ON_BEHALF),
        (replace(FOR_OTHER, permissions=("documents:submit", "documents:view")), ON_BEHALF),
    ],
)
def test_a_token_is_active_as_long_as_its_login_would_get_it(
    token: AccessToken, login: Facts
) -> None:
    assert status(token, login) == "active"


@pytest.mark.parametrize(
    ("token", "login", "reason"),
    [
        (TOKEN, None, "login_not_recorded"),
        (TOKEN, client(blocked_at=AT), "system_user_blocked"),
        (TOKEN, client(client_id="ci_test_y"), "client_or_taxpayer_differs"),
        (replace(TOKEN, subject=OTHER), OWN_FACTS, "client_or_taxpayer_differs"),
        (replace(TOKEN, actor=str(OWN)), OWN_FACTS, "client_or_taxpayer_differs"),
        (replace(FOR_OTHER, actor=None), ON_BEHALF, "client_or_taxpayer_differs"),
        (replace(FOR_OTHER, actor="D1"), ON_BEHALF, "client_or_taxpayer_differs"),
        (
            replace(TOKEN, scopes=("InvoicingAPI", "ReportingAPI")),
            client(scopes=("InvoicingAPI",)),
            "scope_ended",
        ),
        (FOR_OTHER, granted("documents:submit"), "permission_ended"),
        (
            replace(FOR_OTHER, permissions=("documents:submit", "documents:view")),
            granted("documents:view"),
            "permission_ended",
        ),
    ],
)
def test_each_reason_why_it_is_not(token: AccessToken, login: Facts | None, reason: str) -> None:
    assert status(token, login) == reason


def test_a_revoked_token_and_a_compromised_key_are_named_before_the_registry() -> None:
    blocked = client(blocked_at=AT)
    assert status(TOKEN, blocked, is_revoked=True, key_is_compromised=True) == "token_revoked"
    assert status(TOKEN, blocked, key_is_compromised=True) == "signing_key_compromised"
    assert status(TOKEN, OWN_FACTS, is_revoked=True) == "token_revoked"
    assert status(TOKEN, None, is_revoked=True) == "login_not_recorded"


def test_what_once_ended_a_token_is_named_after_what_refuses_it_now() -> None:
    assert status(TOKEN, OWN_FACTS, has_index=False) == "token_ended"
    assert status(TOKEN, client(blocked_at=AT), has_index=False) == "system_user_blocked"
