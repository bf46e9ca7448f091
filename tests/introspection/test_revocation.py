"""`POST /connect/revocation`: the client that owns a token ends it, for good (RFC 7009)."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.http import HttpResponse

from taxpayers.services import block_system_user, unblock_system_user
from tests.introspection.api import INACTIVE, Api, assert_headers, claims_of, revoke, token_of
from tests.introspection.test_callers import assert_error
from tests.support.answers import body_of
from tests.support.erp import Erp, new_erp
from tests.support.factories import GrantedPermissionFactory
from tests.support.moments import now, why
from tests.support.outages import writing_fails
from tests.support.queries import statements_sent
from tests.tokens.test_protected_api import FOREIGN_TOKENS
from tokens.models import RevokedToken

pytestmark = pytest.mark.django_db


def assert_done(response: HttpResponse) -> None:
    """The whole answer: 200 with an empty body."""
    assert (response.status_code, response.content) == (200, b"")
    assert_headers(response)
    assert response["Content-Length"] == "0"


def is_active(api: Api, token: str) -> bool:
    active: bool = body_of(api.introspect(token))["active"]
    return active


def test_a_client_ends_what_its_secret_got_for_one_taxpayer_and_no_other(
    api: Api, intermediary: Erp
) -> None:
    """As the status lists, in which these tokens share a bit."""
    tin = GrantedPermissionFactory.create(intermediary=intermediary.role).taxpayer.tin
    ended, sibling = token_of(intermediary), token_of(intermediary)
    others = [token_of(intermediary, on_behalf_of=tin), token_of(new_erp())]
    assert_done(revoke(intermediary, ended))
    assert body_of(api.introspect(ended)) == INACTIVE
    assert not is_active(api, sibling)
    assert [is_active(api, each) for each in (*others, token_of(intermediary))] == [True] * 3
    assert_done(revoke(intermediary, others[0]))
    assert not is_active(api, others[0])
    assert is_active(api, token_of(intermediary, on_behalf_of=tin)), "it may still act"


def test_it_is_safe_to_repeat(api: Api, erp: Erp) -> None:
    token = token_of(erp)
    for _ in range(2):
        assert_done(revoke(erp, token))
    claims, row = claims_of(token), RevokedToken.objects.get()
    assert row.jti == UUID(claims["jti"])
    assert row.expires_at == datetime.fromtimestamp(claims["exp"], UTC)
    assert abs(now() - row.revoked_at) < timedelta(minutes=1)
    assert not is_active(api, token)


def test_a_token_that_is_not_valid_is_no_error_and_stores_nothing(erp: Erp) -> None:
    for make in FOREIGN_TOKENS.values():
        assert_done(revoke(erp, make()[:16_000]))
    assert not RevokedToken.objects.exists()


def test_what_stands_around_a_token_does_not_save_it(api: Api, erp: Erp) -> None:
    """200 says that it is not active any more: a line break of a file must not make that untrue."""
    around = ("{}\n", " {} ", '"{}"', "Bearer {}", "Authorization: Bearer {}\r\n", "{}=", "{},")
    for sent in around:
        token = token_of(erp)
        assert_done(revoke(erp, sent.format(token)))
        assert not is_active(api, token), sent


def test_a_token_of_another_client_stays_active(api: Api, erp: Erp) -> None:
    other = new_erp(taxpayer=erp.system_user.taxpayer)
    token = token_of(other)
    answer = revoke(erp, token)
    assert_error(answer, 400, "invalid_grant", "issued to another client_id, so it stays valid")
    assert is_active(api, token)
    assert not RevokedToken.objects.exists()


def test_a_blocked_client_ends_its_own_token_and_the_end_stays_after_the_block(
    api: Api, erp: Erp
) -> None:
    token, user = token_of(erp), erp.system_user
    block_system_user(system_user=user, **why())
    assert_done(revoke(erp, token))
    unblock_system_user(system_user=user, **why())
    assert not is_active(api, token)


def test_a_revocation_is_two_statements(erp: Erp) -> None:
    token = token_of(erp)
    with statements_sent() as words:
        revoke(erp, token)
    sent = [word for word in words if word not in ("SAVEPOINT", "RELEASE")]
    is_postgresql = connection.vendor == "postgresql"
    assert sent == ["SELECT", *(["WITH"] if is_postgresql else ["INSERT", "DELETE"])]


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_stored_is_not_answered_with_200(api: Api, erp: Erp) -> None:
    token = token_of(erp)
    with writing_fails("revoked_tokens"):
        answer = revoke(erp, token)
    assert answer.status_code in (500, 503)
    assert is_active(api, token)
