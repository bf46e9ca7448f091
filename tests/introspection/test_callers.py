"""Who may introspect and revoke, and every refusal of both (RFC 7662 2.3, RFC 6749 5.2)."""

import json
import logging
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from django.http import HttpResponse

from taxpayers.models import Credential, RateLimitCounter
from tests.introspection.api import (
    INTROSPECT,
    REVOKE,
    Api,
    another,
    assert_headers,
    post,
    revoke,
    token_of,
)
from tests.support.answers import body_of, headers_of
from tests.support.erp import Erp
from tests.support.moments import why
from tests.support.outages import database_out_of_reach
from tests.support.queries import statements_sent
from tokens.models import FailureBucket, LoginEvent, ProtectedApiSecret
from tokens.protected_apis.registration import set_protected_api_active
from tokens.rate_limits.backoff import PAIR_BACKOFF

pytestmark = pytest.mark.django_db

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
    reference, body = assert_headers(response, **headers), body_of(response)
    assert (set(body), body["error"]) == ({"error", "error_description"}, error)
    assert re.fullmatch(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+", body["error_description"])
    assert text in body["error_description"]
    assert body["error_description"].endswith(f" Reference: {reference}")


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
    own = {"client_id": erp.client_id, "client_secret": erp.client_secret}
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
        ({"revoked_at": datetime(2026, 1, 31, tzinfo=UTC)}, "was revoked on 2026-01-31"),
        (
            {
                "created_at": datetime(2025, 1, 31, tzinfo=UTC),
                "expires_at": datetime(2026, 1, 31, tzinfo=UTC),
            },
            "expired on 2026-01-31",
        ),
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
