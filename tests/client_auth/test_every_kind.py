"""A login with a secret, a key or a certificate: what holds for each kind of credentials."""

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from taxpayers.credentials import new_client_id
from taxpayers.models import Credential, RateLimitCounter, SystemUser
from taxpayers.services import block_system_user, revoke_credential
from tests.client_auth.key_erp import JWT_BEARER, KeyErp, new_key_erp, new_pair
from tests.client_auth.kinds import CERTIFICATE, KEY, KINDS, SECRET, Kind, newest
from tests.introspection.api import INACTIVE, REVOKE, Api, post, token_of
from tests.self_service.calls import CREDENTIALS, REVOKE_LAST, call
from tests.support.answers import body_of
from tests.support.erp import (
    Erp,
    assert_every_answer,
    assert_refused,
    claims_of,
    description_of,
    new_erp,
    reason_of,
)
from tests.support.moments import why
from tests.support.queries import statements_sent
from tokens.client_auth import compact_jws, private_key_jwt
from tokens.models import LoginEvent, UsedAssertion
from tokens.operations.node import this_node
from tokens.rate_limits.backoff import PAIR_BACKOFF

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name.value)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


# What tests of secrets elsewhere prove is left out for them here.
not_secrets = pytest.mark.parametrize("kind", [KEY, CERTIFICATE], ids=["key", "certificate"])


def assert_not_accepted(kind: Kind, response: Any) -> None:
    says, fixed_by = kind.not_accepted
    assert_refused(response, reason="invalid_credentials", says=says, fixed_by=fixed_by)


def test_what_is_right_gives_a_token_and_is_recorded_as_used(kind: Kind, erp: Any) -> None:
    response = erp.login()
    assert_every_answer(response)
    assert json.loads(response.content)["token_type"] == "Bearer"
    assert claims_of(response)["client_id"] == erp.client_id
    assert response["X-Rate-Limit-Remaining"] == "11"
    assert ("X-Client-Secret-Expires-At" in response) is (kind is SECRET)
    event, row = LoginEvent.objects.get(pk=response["correlationId"]), newest(erp)
    assert (event.client_id, event.system_user_id) == (erp.client_id, erp.system_user.pk)
    assert (event.secret_id, row.kind) == (row.pk, kind.name)
    assert RateLimitCounter.objects.get().last_use_of(row.pk) is not None


def test_two_log_in_until_the_old_one_is_removed(kind: Kind, erp: Any) -> None:
    old, new = newest(erp), kind.add(erp)
    for one in (erp, new):
        assert one.login().status_code == 200
    revoke_credential(credential=old, **why())
    assert new.login().status_code == 200
    refused = erp.login()
    assert reason_of(refused) == "secret_revoked"
    assert kind.removed in description_of(refused)


def test_one_that_has_expired_is_named_with_its_date(kind: Kind, erp: Any) -> None:
    now = timezone.now()
    Credential.objects.update(created_at=now - 2 * DAY, expires_at=now - DAY)
    assert_refused(
        erp.login(),
        reason="secret_expired",
        says=kind.expired,
        fixed_by="The person who rotates the secrets",
        headers={
            "X-Rate-Limit-Limit": "12",
            "X-Rate-Limit-Remaining": "12",
            **({"X-Client-Secret-Expires-At": ".*"} if kind is SECRET else {}),
        },
    )


@pytest.mark.parametrize(("kind", "other"), [*permutations(KINDS, 2)])
def test_a_client_has_the_path_of_its_own_kind_and_no_other(
    kind: Kind, other: Kind, erp: Any
) -> None:
    """Also where what it would need is stored, because it was written by SQL."""
    elsewhere = other.new()
    Credential.objects.filter(system_user=elsewhere.system_user).update(
        system_user=erp.system_user, slot=None
    )
    if isinstance(elsewhere, Erp):
        elsewhere.client_id = erp.client_id
    else:
        elsewhere.system_user = erp.system_user
    assert_not_accepted(other, elsewhere.login())
    assert erp.login().status_code == 200
    SystemUser.objects.filter(pk=erp.system_user.pk).update(token_endpoint_auth_method=other.method)
    assert_not_accepted(kind, erp.login())
    assert elsewhere.login().status_code == 200


def test_strangers_get_one_answer(kind: Kind, erp: Any) -> None:
    blocked = kind.new()
    block_system_user(system_user=blocked.system_user, **why())
    others = [other.new() for other in KINDS if other is not kind]
    unknown = Erp(new_client_id("test"), "")
    answers = [kind.stranger(one) for one in (erp, blocked, unknown, *others)]
    if isinstance(erp, KeyErp):
        rsa = new_pair("PS256", erp.pair.kid)
        wrong = (erp.assertion(pair=new_pair()), erp.assertion(pair=rsa))
        answers += [erp.login(assertion) for assertion in wrong]
        answers.append(erp.login(erp.assertion(header={"kid": "x" * 200})))
    for answer in answers:
        assert_not_accepted(kind, answer)
    assert len({description_of(answer) for answer in answers}) == 1
    assert "was blocked on" in description_of(blocked.login()), "it has proved who it is"


def statements(log_in: Callable[[], Any], status: int = 200) -> list[str]:
    with statements_sent() as words:
        assert log_in().status_code == status
    return sorted(words)


@not_secrets
def test_a_login_costs_what_one_with_a_secret_costs(kind: Kind, erp: Any) -> None:
    secret = new_erp()
    for one in (erp, secret):  # the first login of a process reads the signing keys, too
        assert one.login().status_code == 200
    expected = statements(secret.login)
    if kind is KEY and "UPDATE" in expected:  # SQLite writes row by row: that it is used, too
        expected = sorted([*expected, "INSERT"])
    assert statements(erp.login) == expected


@not_secrets
def test_an_unknown_client_and_a_wrong_proof_cost_the_same_queries(kind: Kind, erp: Any) -> None:
    unknown, found = Erp(new_client_id("test"), ""), []
    for one in (erp, unknown):
        assert erp.login().status_code == 200
        found.append(statements(lambda one=one: kind.stranger(one), 400))  # type: ignore[misc]
    assert found[0] == found[1]


def test_over_its_limit_it_costs_nothing_and_a_stranger_is_not_told(
    kind: Kind, takes_certificates: None
) -> None:
    erp = kind.new(logins_per_minute=1)
    assert erp.login().status_code == 200
    refused = erp.login()
    assert refused.status_code == 429
    assert ("X-Client-Secret-Expires-At" in refused) is (kind is SECRET)
    sent = statements(erp.login, 429)
    assert sent == [] or (connection.vendor == "sqlite" and kind is not SECRET)
    assert_not_accepted(kind, kind.stranger(erp))


def test_a_stranger_has_to_wait_and_does_not_slow_down_the_client(kind: Kind, erp: Any) -> None:
    answers = [kind.stranger(erp) for _ in range(PAIR_BACKOFF.free + 2)]
    assert [a.status_code for a in answers] == [400] * (PAIR_BACKOFF.free + 1) + [429]
    assert (answers[-1]["Retry-After"], answers[-1].reason_phrase) == ("1", "invalid_request")
    assert erp.login()["X-Rate-Limit-Remaining"] == "11"


@pytest.mark.postgresql
def test_a_stranger_fills_no_memory_of_a_node(
    kind: Kind, erp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[Any] = []
    monkeypatch.setattr(
        type(this_node().local_facts), "store", lambda self, query, facts: stored.append(query)
    )
    assert reason_of(kind.stranger(erp)) == "invalid_credentials"
    assert stored == []
    assert erp.login().status_code == 200
    assert {query.client_id for query in stored} == {erp.client_id}


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (KEY, {"public_jwk": json.dumps(new_pair().public_jwk)}),  # of the same name
        (CERTIFICATE, {"lookup": "tls$x"}),
        (CERTIFICATE, {"certificate_name": None}),
    ],
)
def test_what_was_changed_by_sql_logs_in_no_more(
    kind: Kind, erp: Any, changed: dict[str, Any]
) -> None:
    """Every other change: tests/registry/test_epochs.py and tests/facts/test_confirmation.py."""
    for _ in range(2):
        assert erp.login().status_code == 200
    Credential.objects.update(**changed)
    assert reason_of(erp.login()) == "invalid_credentials"


@not_secrets
def test_a_new_one_logs_in_at_once_where_it_was_refused_before(kind: Kind, erp: Any) -> None:
    refused = kind.new()
    new = kind.add(erp)
    row = newest(erp)
    Credential.objects.filter(pk=row.pk).update(system_user=refused.system_user, slot=2)
    assert reason_of(new.login()) == "invalid_credentials"
    Credential.objects.filter(pk=row.pk).update(system_user=erp.system_user)
    assert new.login().status_code == 200


@pytest.fixture
def key_erp() -> KeyErp:
    return new_key_erp()


def test_an_assertion_logs_in_once_and_staff_see_why(key_erp: KeyErp) -> None:
    assertion = key_erp.assertion()
    assert key_erp.login(assertion).status_code == 200
    again = key_erp.login(assertion)
    assert_refused(
        again,
        reason="invalid_credentials",
        says="its jti was used before",
        fixed_by="The developer of the ERP system",
    )
    event = LoginEvent.objects.get(pk=again["correlationId"])
    assert (event.detail, event.secret_id) == (
        "used_before",
        key_erp.system_user.credentials.get().pk,
    )
    assert RateLimitCounter.objects.get(system_user=key_erp.system_user).used == 1


def test_a_stranger_cannot_use_up_a_jti(key_erp: KeyErp) -> None:
    jti = str(uuid4())
    forged = key_erp.assertion(pair=new_pair(), header={"kid": key_erp.pair.kid}, jti=jti)
    assert key_erp.login(forged).status_code == 400
    assert not UsedAssertion.objects.exists()
    assert key_erp.login(key_erp.assertion(jti=jti)).status_code == 200


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_each_login_costs_one_verification_also_of_a_stranger(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_erp = new_key_erp(algorithm)
    assert key_erp.login().status_code == 200  # from now on this node remembers it
    verify = Mock(wraps=compact_jws.is_signature)
    monkeypatch.setattr(private_key_jwt, "is_signature", verify)
    other, known = new_pair(algorithm), {"kid": key_erp.pair.kid}
    strangers = [
        KeyErp(user, new_pair(algorithm))
        for user in (new_erp().system_user, SystemUser(client_id=new_erp().client_id))
    ]
    for sent in (
        *(key_erp.assertion(), key_erp.assertion(pair=other)),
        key_erp.assertion(pair=other, header=known),
        *(stranger.assertion() for stranger in strangers),
    ):
        verify.reset_mock()
        key_erp.login(sent)
        assert verify.call_count == 1


def proof(assertion: str) -> dict[str, str]:
    return {"client_assertion_type": JWT_BEARER, "client_assertion": assertion}


def test_an_assertion_ends_a_token_or_logs_in_once(api: Api, key_erp: KeyErp) -> None:
    token, assertion = token_of(key_erp), key_erp.assertion()
    for wrong in (
        key_erp.assertion(aud=f"{settings.AUTH_URL}/connect/revocation"),
        key_erp.assertion(pair=new_pair(), header={"kid": key_erp.pair.kid}),
    ):
        assert post(REVOKE, {"token": token, **proof(wrong)}).status_code == 401
    assert body_of(api.introspect(token))["active"] is True
    assert post(REVOKE, {"token": token, **proof(assertion)}).status_code == 200
    assert body_of(api.introspect(token)) == INACTIVE
    assert key_erp.login(assertion).status_code == 400
    used = key_erp.assertion()
    assert key_erp.login(used).status_code == 200
    refused = post(REVOKE, {"token": token, **proof(used)})
    assert (refused.status_code, body_of(refused)["error"]) == (401, "invalid_client")


def test_assertions_that_end_tokens_are_limited_as_logins_are_and_those_of_others_are_not(
    key_erp: KeyErp,
) -> None:
    """Each that is used is a row."""
    limit, other = key_erp.system_user.logins_per_minute, new_key_erp()
    answers = [post(REVOKE, {"token": "x", **proof(key_erp.assertion())}) for _ in range(limit + 2)]
    assert [answer.status_code for answer in answers] == [200] * limit + [429] * 2
    assert UsedAssertion.objects.count() == limit
    assert "Too many tokens were ended" in body_of(answers[-1])["error_description"]
    assert 0 < int(answers[-1]["Retry-After"]) <= 60
    assert post(REVOKE, {"token": "x", **proof(other.assertion())}).status_code == 200
    assert key_erp.login().status_code == 200


def test_it_ends_its_key_and_then_nothing_logs_in_with_it(api: Api, key_erp: KeyErp) -> None:
    token = token_of(key_erp)
    assert call("DELETE", CREDENTIALS, token).status_code == 409
    assert key_erp.login().status_code == 200
    assert body_of(call("DELETE", REVOKE_LAST, token))["revoked"]["hint"] == key_erp.pair.kid[-4:]
    assert key_erp.login().status_code == 400
    assert body_of(api.introspect(token)) == INACTIVE
