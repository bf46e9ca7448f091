"""A login with a private key: what it gets, what it is recorded as, and what it cannot do."""

import json
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from taxpayers.client_keys import key_name
from taxpayers.facts.values import FactsQuery
from taxpayers.models import Credential, RateLimitCounter, SystemUser
from taxpayers.services import (
    block_system_user,
    register_client_keys,
    revoke_credential,
    use_client_secret,
)
from tests.client_auth.key_erp import BY, KeyErp, jwks, new_key_erp, new_pair, signed_as
from tests.support.erp import Erp, assert_every_answer, assert_refused, claims_of, new_erp
from tests.support.factories import CredentialFactory
from tests.support.queries import statements_sent
from tokens.models import LoginEvent, UsedAssertion
from tokens.operations.node import this_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> KeyErp:
    return new_key_erp()


def description(response: Any) -> str:
    text: str = json.loads(response.content)["error_description"]
    return text.partition(" Reference: ")[0]


def assert_not_accepted(response: Any) -> None:
    assert_refused(
        response,
        reason="invalid_credentials",
        status=400,
        error="invalid_client",
        says="This client_assertion is not accepted",
        fixed_by="The developer of the ERP system",
    )


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_a_signed_assertion_gives_a_token(algorithm: str) -> None:
    erp = new_key_erp(algorithm)
    response = erp.login(client_id=erp.client_id)
    assert_every_answer(response)
    assert response.status_code == 200
    assert claims_of(response)["client_id"] == erp.client_id
    assert response["X-Rate-Limit-Remaining"] == "11"
    assert "X-Client-Secret-Expires-At" not in response


def test_eddsa_is_accepted_by_its_new_name_too() -> None:
    """RFC 9864: oauth4webapi, openid-client and jose send `Ed25519`."""
    erp = new_key_erp("EdDSA")
    for name in ("EdDSA", "Ed25519"):
        assert erp.login(signed_as(name, erp.assertion(), erp.pair)).status_code == 200


def test_the_client_id_in_the_form_can_be_left_out(erp: KeyErp) -> None:
    assert erp.login(client_id=None).status_code == 200


def test_the_event_and_the_last_use_name_the_key(erp: KeyErp) -> None:
    reference = erp.login()["correlationId"]
    key = erp.system_user.credentials.get()
    event = LoginEvent.objects.get(pk=reference)
    assert (event.client_id, event.system_user_id) == (erp.client_id, erp.system_user.pk)
    assert event.secret_id == key.pk
    assert key.kid == erp.pair.kid
    usage = RateLimitCounter.objects.get(system_user=erp.system_user)
    assert usage.last_use_of(key.pk) is not None


def test_two_keys_log_in_until_the_old_one_is_removed(erp: KeyErp) -> None:
    new = new_pair("EdDSA")
    now = timezone.now()
    register_client_keys(system_user=erp.system_user, keys=jwks(new), by=BY, at=now)
    assert erp.login().status_code == 200
    assert erp.login(erp.assertion(pair=new)).status_code == 200
    old = erp.system_user.credentials.get(hint=erp.pair.kid[-4:])
    revoke_credential(credential=old, reason="rotated", by=BY, at=now)
    assert erp.login(erp.assertion(pair=new)).status_code == 200
    refused = erp.login()
    assert "The key of this client_assertion was removed on" in description(refused)
    assert LoginEvent.objects.get(pk=refused["correlationId"]).reason == "secret_revoked"


def test_an_expired_key_is_named_with_its_date(erp: KeyErp) -> None:
    row = erp.system_user.credentials.get()
    now = timezone.now()
    Credential.objects.filter(pk=row.pk).update(
        created_at=now - timedelta(days=2), expires_at=now - timedelta(days=1)
    )
    assert_refused(
        erp.login(),
        reason="secret_expired",
        status=400,
        error="invalid_client",
        says="The key of this client_assertion expired on",
        fixed_by="The person who rotates the secrets",
        headers={"X-Rate-Limit-Limit": "12", "X-Rate-Limit-Remaining": "12"},
    )


def test_a_client_with_a_key_has_no_secret_path(erp: KeyErp) -> None:
    # Also one that is still stored, because somebody wrote it by SQL.
    secret: Any = CredentialFactory.create(system_user=erp.system_user, slot=2)
    response = Erp(erp.client_id, secret.clear).login()
    assert "client_id or client_secret is wrong" in description(response)
    assert LoginEvent.objects.get(pk=response["correlationId"]).reason == "invalid_credentials"


def test_a_client_with_a_secret_has_no_key_path(erp: KeyErp) -> None:
    SystemUser.objects.filter(pk=erp.system_user.pk).update(token_endpoint_auth_method="")
    assert_not_accepted(erp.login())


def test_after_a_change_back_the_new_secret_logs_in_and_the_key_does_not(erp: KeyErp) -> None:
    assert erp.login().status_code == 200
    issued = use_client_secret(
        system_user=erp.system_user, reason="no more keys", by=BY, at=timezone.now()
    )
    assert_not_accepted(erp.login())
    assert Erp(erp.client_id, issued.credentials.client_secret).login().status_code == 200


def test_a_secret_and_an_assertion_at_once_are_refused(erp: KeyErp) -> None:
    basic = {"Authorization": Erp(erp.client_id, "cs_test_x").basic}
    for response in (erp.login(client_secret="cs_test_x"), erp.login(headers=basic)):
        assert "both a client_secret and a client_assertion are sent" in description(response)
        assert json.loads(response.content)["error"] == "invalid_request"


def test_a_request_that_is_refused_is_found_by_the_client_that_it_names(erp: KeyErp) -> None:
    response = erp.login(erp.assertion(aud="https://other.example.org"))
    event = LoginEvent.objects.get(pk=response["correlationId"])
    assert (event.reason, event.client_id) == ("malformed_credentials", erp.client_id)
    assert (event.parameter, event.detail) == ("client_assertion", "assertion_audience")
    assert event.system_user_id is None  # it proved nothing


def test_a_missing_part_is_named(erp: KeyErp) -> None:
    for name in ("client_assertion", "client_assertion_type"):
        assert f"The parameter {name} is missing" in description(erp.login(**{name: None}))
    wrong = erp.login(client_assertion_type="urn:ietf:params:oauth:grant-type:jwt-bearer")
    assert "client_assertion_type must be urn:ietf:params:oauth:client-ass" in description(wrong)


def test_strangers_get_one_answer(erp: KeyErp) -> None:
    other = new_pair()
    answers = [
        erp.login(erp.assertion(pair=other)),  # an unknown key
        erp.login(erp.assertion(pair=other, header={"kid": erp.pair.kid})),  # a wrong signature
        erp.login(erp.assertion(header={"kid": "x" * 200})),
        erp.login(erp.assertion(pair=new_pair("PS256"), header={"kid": erp.pair.kid})),
        KeyErp(new_erp().system_user, other).login(),  # a client that has no key
    ]
    unknown = KeyErp(SystemUser(client_id=new_erp().client_id), other)
    SystemUser.objects.filter(client_id=unknown.client_id).delete()
    answers.append(unknown.login())
    blocked = new_key_erp()
    block_system_user(system_user=blocked.system_user, reason="r", by=BY, at=timezone.now())
    answers.append(blocked.login(blocked.assertion(pair=other, header={"kid": blocked.pair.kid})))
    for response in answers:
        assert_not_accepted(response)
    assert len({description(response) for response in answers}) == 1


def test_what_a_blocked_client_is_told_after_its_signature_matched(erp: KeyErp) -> None:
    block_system_user(system_user=erp.system_user, reason="r", by=BY, at=timezone.now())
    assert "was blocked on" in description(erp.login())


def test_a_login_is_one_query_and_one_record(erp: KeyErp) -> None:
    secret = new_erp()
    for one in (erp, secret):  # the first login of a process reads the signing keys, too
        assert one.login().status_code == 200
    with statements_sent() as with_key:
        assert erp.login().status_code == 200
    with statements_sent() as with_secret:
        assert secret.login().status_code == 200
    extra = [] if "UPDATE" not in with_secret else ["INSERT"]  # SQLite writes row by row
    assert sorted(with_key) == sorted(with_secret + extra)


# --- Used once -----------------------------------------------------------------------------------


def test_an_assertion_logs_in_once_and_staff_see_why(erp: KeyErp) -> None:
    assertion = erp.assertion()
    assert erp.login(assertion).status_code == 200
    again = erp.login(assertion)
    assert_not_accepted(again)
    event = LoginEvent.objects.get(pk=again["correlationId"])
    assert (event.detail, event.secret_id) == ("used_before", erp.system_user.credentials.get().pk)
    usage = RateLimitCounter.objects.get(system_user=erp.system_user)
    assert usage.used == 1


def test_another_assertion_with_the_same_jti_is_refused(erp: KeyErp) -> None:
    jti = str(uuid4())
    assert erp.login(erp.assertion(jti=jti)).status_code == 200
    assert_not_accepted(erp.login(erp.assertion(jti=jti, exp=int(time.time()) + 120)))


def test_another_client_may_have_the_same_jti(erp: KeyErp) -> None:
    jti = str(uuid4())
    for one in (erp, new_key_erp()):
        assert one.login(one.assertion(jti=jti)).status_code == 200


def test_a_stranger_cannot_use_up_a_jti(erp: KeyErp) -> None:
    jti = str(uuid4())
    forged = erp.assertion(pair=new_pair(), header={"kid": erp.pair.kid}, jti=jti)
    assert_not_accepted(erp.login(forged))
    assert not UsedAssertion.objects.exists()
    assert erp.login(erp.assertion(jti=jti)).status_code == 200


def test_a_login_over_the_limit_uses_up_no_jti() -> None:
    erp = new_key_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    response = erp.login()
    assert response.status_code == 429
    assert "X-Client-Secret-Expires-At" not in response
    assert UsedAssertion.objects.count() == 1


def test_it_is_stored_until_it_cannot_be_accepted(erp: KeyErp) -> None:
    expires = int(time.time()) + 200
    erp.login(erp.assertion(exp=expires))
    assert UsedAssertion.objects.get().expires_at.timestamp() == expires + 10


# --- Limits --------------------------------------------------------------------------------------


def test_a_stranger_who_knows_the_kid_does_not_slow_down_the_client(erp: KeyErp) -> None:
    forged = [erp.assertion(pair=new_pair(), header={"kid": erp.pair.kid}) for _ in range(15)]
    assert [erp.login(assertion).status_code for assertion in forged][-1] == 429
    assert erp.login().status_code == 200


def test_a_stranger_is_not_told_that_the_client_is_over_its_limit() -> None:
    erp = new_key_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    assert erp.login().status_code == 429
    assert_not_accepted(erp.login(erp.assertion(pair=new_pair(), header={"kid": erp.pair.kid})))


@pytest.mark.postgresql
def test_a_client_over_its_limit_costs_no_further_statement() -> None:
    erp = new_key_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    assert erp.login().status_code == 429
    with statements_sent() as sent:
        assert erp.login().status_code == 429
    assert sent == []


@pytest.mark.postgresql
def test_a_node_remembers_a_client_only_after_its_signature_matched(erp: KeyErp) -> None:
    query = FactsQuery(erp.client_id, key_name(erp.pair.kid), None)
    erp.login(erp.assertion(pair=new_pair(), header={"kid": erp.pair.kid}))
    assert this_node().local_facts.find(query) is None
    erp.login()
    assert this_node().local_facts.find(query) is not None
