"""`POST /connect/introspect`: the whole answer, and every reason for an inactive one (RFC 7662)."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.http import HttpResponse
from msgspec.structs import replace
from pytest_django.fixtures import Settings

from taxpayers.models import StatusIndex, SystemUser
from tests.introspection.api import INACTIVE, Api, assert_headers, claims_of, new_api, token_of
from tests.support.answers import body_of
from tests.support.erp import Erp
from tests.support.factories import GrantedPermissionFactory
from tests.support.moments import now, why
from tests.support.queries import statements_sent
from tests.tokens.test_protected_api import FOREIGN_TOKENS, authorization
from tokens.access_tokens.claims import index_of_claims
from tokens.access_tokens.issuing import issue_access_token
from tokens.keys.signer import current_key_ring
from tokens.keys.store import stop_compromised_key
from tokens.models import LoginEvent

pytestmark = pytest.mark.django_db


def assert_answer(response: HttpResponse, body: dict[str, Any]) -> None:
    """The whole answer."""
    assert (response.status_code, response.reason_phrase) == (200, "OK")
    assert_headers(response)
    assert body_of(response) == body


@pytest.fixture
def acting(intermediary: Erp) -> tuple[str, str]:
    """The taxpayer that an intermediary acts for, and its token."""
    permission = GrantedPermissionFactory.create(intermediary=intermediary.role)
    tin = str(permission.taxpayer.identifier)
    return tin, token_of(intermediary, on_behalf_of=tin)


# --- Active ---------------------------------------------------------------------------------------


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


# --- Inactive: the token --------------------------------------------------------------------------


def test_a_token_that_is_not_ours_is_inactive_and_nothing_more(api: Api) -> None:
    for make in FOREIGN_TOKENS.values():
        assert_answer(api.introspect(make()[:16_000]), INACTIVE)


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


def test_an_expired_token_is_inactive(api: Api, erp: Erp) -> None:
    recorded = claims_of(token_of(erp))
    login = replace(
        authorization(), client_id=erp.client_id, subject=erp.system_user.taxpayer.identifier
    )

    def again(age: timedelta) -> bool:
        token = issue_access_token(
            replace(login, at=now() - age),
            jti=UUID(recorded["jti"]),
            status_index=index_of_claims(recorded) or 0,
        )
        active: bool = body_of(api.introspect(token.encoded))["active"]
        return active

    assert again(timedelta(minutes=59))
    assert not again(timedelta(minutes=60))


@pytest.mark.parametrize("column", ["system_user_id", "secret_id"])
def test_a_token_whose_index_is_that_of_another_client_or_secret_is_inactive(
    column: str, api: Api, erp: Erp
) -> None:
    """As after a backup was restored."""
    token = token_of(erp)
    StatusIndex.objects.update(**{column: F(column) + 1})
    assert_answer(api.introspect(token), INACTIVE)


def test_a_signed_token_whose_login_is_not_recorded_is_inactive(api: Api, erp: Erp) -> None:
    token = token_of(erp)
    LoginEvent.objects.all().delete()
    assert_answer(api.introspect(token), INACTIVE)


def test_a_token_of_a_compromised_key_is_inactive_before_the_key_ring_is_read_again(
    api: Api, erp: Erp
) -> None:
    token = token_of(erp)
    key = current_key_ring(now()).signer(now())
    stop_compromised_key(kid=key.kid, alg="ES256", **why())
    assert current_key_ring(now()).find(key.kid) == key, "this process has not read it yet"
    assert_answer(api.introspect(token), INACTIVE)
