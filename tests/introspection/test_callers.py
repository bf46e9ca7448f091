"""Who asks about tokens, and who revokes them: protected APIs and clients (RFC 7662, RFC 7009)."""

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.http import HttpResponse

from taxpayers.models import Credential, RateLimitCounter
from taxpayers.services import block_system_user, unblock_system_user
from tests.introspection.api import (
    INACTIVE,
    INTROSPECT,
    REVOKE,
    Api,
    another,
    assert_headers,
    claims_of,
    forged,
    post,
    revoke,
    token_of,
)
from tests.support import answers, make
from tests.support.answers import body_of, headers_of
from tests.support.erp import Erp, new_erp
from tests.support.moments import now, why
from tests.support.outages import database_out_of_reach, writing_fails
from tests.support.queries import statements_sent
from tokens.models import FailureBucket, LoginEvent, ProtectedApiSecret, RevokedToken
from tokens.protected_apis.registration import set_protected_api_active
from tokens.rate_limits.backoff import PAIR_BACKOFF

pytestmark = pytest.mark.django_db

ENDED = datetime(2026, 1, 31, tzinfo=UTC)
CHALLENGE = 'Basic realm="identity", charset="UTF-8"'


@dataclass
class Caller:
    """Who asks at one of the two paths, and a token to ask about."""

    path: str
    client_id: str
    client_secret: str
    token: str

    def send(self, headers: Any = None, **form: Any) -> HttpResponse:
        sent = {"client_id": self.client_id, "client_secret": self.client_secret}
        return post(self.path, sent | {"token": self.token} | form, headers=headers)


@pytest.fixture(params=[INTROSPECT, REVOKE])
def caller(request: pytest.FixtureRequest, api: Api, erp: Erp) -> Caller:
    token = token_of(erp)
    if request.param == INTROSPECT:
        return Caller(INTROSPECT, api.client_id, api.client_secret, token)
    return Caller(REVOKE, erp.client_id, erp.client_secret, token)


def assert_error(
    response: HttpResponse, status: int, error: str, text: str, **headers: str
) -> None:
    """The whole answer; `headers` are those beside the ones of every answer."""
    assert (response.status_code, response.reason_phrase) == (status, error)
    answers.assert_error(body_of(response), error, text, assert_headers(response, **headers))


def assert_401(response: HttpResponse, text: str) -> None:
    assert_error(response, 401, "invalid_client", text, WWW_Authenticate=CHALLENGE)


def without_reference(response: HttpResponse) -> Any:
    text = response.content.decode() + repr(sorted(headers_of(response).items()))
    return response.status_code, text.replace(response["correlationId"], "")


def test_an_unknown_id_and_a_wrong_secret_get_one_answer(caller: Caller) -> None:
    before = LoginEvent.objects.count()
    wrong = caller.send(client_secret=another(caller.client_secret))
    assert_401(wrong, "client_id or client_secret is wrong")
    assert LoginEvent.objects.count() == before, "it is no login"
    unknown = caller.send(client_id=another(caller.client_id))
    assert without_reference(wrong) == without_reference(unknown)


def test_system_users_and_apis_have_credentials_of_their_own(api: Api, erp: Erp) -> None:
    own = erp.credentials
    token = {"token": token_of(erp)}
    for _ in range(PAIR_BACKOFF.free + 2):  # it counts as no failure of theirs
        assert_401(post(INTROSPECT, own | token), "client_id is of another kind of client")
        assert_401(post(REVOKE, api.form | token), "client_id is of another kind of client")
    assert api.introspect(token_of(erp)).status_code == 200
    assert revoke(erp, "x").status_code == 200
    login = body_of(Erp(api.client_id, api.client_secret).login())
    assert login["error"] == "invalid_client"
    assert "client_id is of another kind of client: ci_ and cs_" in login["error_description"]


def test_a_deactivated_api_is_refused_as_if_it_did_not_exist(api: Api, erp: Erp) -> None:
    token = token_of(erp)
    set_protected_api_active(protected_api=api.registered, is_active=False, **why())
    assert_401(api.introspect(token), "client_id or client_secret is wrong")
    set_protected_api_active(protected_api=api.registered, is_active=True, **why())
    assert body_of(api.introspect(token))["active"] is True


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"revoked_at": ENDED}, "was revoked on 2026-01-31"),
        ({"created_at": ENDED - timedelta(1), "expires_at": ENDED}, "expired on 2026-01-31"),
    ],
)
def test_a_secret_that_has_ended_is_named_with_its_date(
    caller: Caller, change: dict[str, Any], text: str
) -> None:
    ProtectedApiSecret.objects.update(**change)
    of_client = {"slot": None} if "revoked_at" in change else {}
    Credential.objects.update(**change, **of_client)
    assert_401(caller.send(), text)
    assert FailureBucket.objects.count() == 2


def test_failures_back_off_and_a_right_secret_is_always_heard(caller: Caller) -> None:
    wrong = another(caller.client_secret)
    answers = [caller.send(client_secret=wrong) for _ in range(PAIR_BACKOFF.free + 2)]
    assert [a.status_code for a in answers] == [401] * (PAIR_BACKOFF.free + 1) + [429]
    assert_error(
        answers[-1],
        *(429, "invalid_request", "Too many failed logins"),
        Retry_After="1",
        X_Rate_Limit_Limit="1",
        X_Rate_Limit_Remaining="0",
        X_Rate_Limit_Reset=answers[-1]["X-Rate-Limit-Reset"],
    )
    with statements_sent() as words:
        assert caller.send(client_secret=wrong).status_code == 429
    assert words == [], "a denial that this process remembers costs no query"
    assert caller.send().status_code == 200


def test_failures_count_together_with_those_of_the_login(erp: Erp) -> None:
    wrong = another(erp.client_secret)
    for _ in range(PAIR_BACKOFF.free + 1):
        revoke(erp, "x", client_secret=wrong)
    assert erp.login(client_secret=wrong).status_code == 429


def test_a_client_over_its_limit_of_logins_can_revoke(erp: Erp) -> None:
    token = token_of(erp)
    assert [erp.login().status_code for _ in range(12)][-1] == 429
    assert revoke(erp, token).status_code == 200
    assert RateLimitCounter.objects.get().used == 12


def test_a_database_out_of_reach_is_a_503(caller: Caller) -> None:
    with database_out_of_reach():
        answer = caller.send()
    text = "Nothing is wrong with the request"
    pause = answer.headers["Retry-After"]  # spread
    assert 5 <= int(pause) <= 15
    assert_error(answer, 503, "temporarily_unavailable", text, Retry_After=pause)


@pytest.mark.slow
def test_neither_a_token_nor_a_secret_is_logged(
    caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caller.send()
    caller.send(client_secret=another(caller.client_secret))
    caller.send(token="eyJ" + caller.token)
    lines = [json.dumps(record.__dict__, default=str) for record in caplog.records]
    ours = [record for record in caplog.records if record.name.startswith("tokens.")]
    assert len(ours) >= 3
    for secret in (caller.client_secret, caller.token, caller.token.rpartition(".")[2]):
        assert not any(secret in line for line in lines)


def test_the_log_names_the_login_and_why_its_token_is_inactive(
    api: Api, erp: Erp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    token = token_of(erp)
    jti = str(LoginEvent.objects.get().pk)
    revoke(erp, token)
    api.introspect(token)
    (record,) = (r for r in caplog.records if r.name == "tokens.introspection")
    logged = record.__dict__
    assert (logged["outcome"], logged["status"]) == ("inactive", "token_revoked")
    assert (logged["login"], logged["client_id"]) == (jti, api.client_id)


def assert_done(response: HttpResponse) -> None:
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
    tin = make.permission(intermediary=intermediary.role).taxpayer.tin
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
    for token in (forged(token_of(erp)), "a.b.c"):
        assert_done(revoke(erp, token))
    assert not RevokedToken.objects.exists()


def test_what_stands_around_a_token_does_not_save_it(api: Api, erp: Erp) -> None:
    """200 says that it is not active any more: a line break of a file must not make that untrue."""
    around = ("{}\n", " {} ", '"{}"', "Bearer {}", "Authorization: Bearer {}\r\n", "{}=", "{},")
    for sent in around:
        token = token_of(erp)
        assert_done(revoke(erp, sent.format(token)))
        assert not is_active(api, token), sent


def test_a_token_of_another_client_stays_active(api: Api, erp: Erp) -> None:
    token = token_of(new_erp(taxpayer=erp.system_user.taxpayer))
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
