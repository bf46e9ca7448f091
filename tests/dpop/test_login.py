"""Who gets a bound token by DPoP, and where else a proof of its key is needed (RFC 9449)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from taxpayers.client_keys import read_public_jwk
from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import RateLimitCounter, SystemUser
from tests.client_auth.key_erp import new_key_erp, new_pair
from tests.dpop.dpop_erp import NONCE, DpopErp, events, new_dpop_erp, reason_of
from tests.support.erp import Erp, assert_every_answer, claims_of, new_erp
from tokens.models import LoginEvent, UsedProof

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> DpopErp:
    return new_dpop_erp()


def used(erp: DpopErp) -> int:
    return RateLimitCounter.objects.get(pk=erp.system_user.pk).used


def test_the_token_is_bound_to_the_key_of_the_proof(erp: DpopErp) -> None:
    """Each algorithm: test_proofs.py."""
    response = erp.post()
    assert response.status_code == 200, response.content
    assert json.loads(response.content)["token_type"] == "DPoP"
    assert claims_of(response)["cnf"] == {"jkt": read_public_jwk(erp.jwk)[1]}
    assert_every_answer(response)


def test_the_first_request_gets_a_nonce_and_is_neither_recorded_nor_counted() -> None:
    erp = new_dpop_erp(nonce=False, logins_per_minute=2)
    response = erp.post()
    assert (response.status_code, json.loads(response.content)["error"]) == (400, "use_dpop_nonce")
    assert response.reason_phrase == "use_dpop_nonce"
    assert_every_answer(response)
    assert (events(), used(erp)) == ([], 0)
    for number in (1, 2):
        erp.nonce = None
        assert erp.login().status_code == 200
        assert (events(), used(erp)) == ([""] * number, number)
    assert reason_of(erp.login()) == "rate_limited"


def test_a_stranger_gets_the_same_answer_whatever_proof_it_sends(erp: DpopErp) -> None:
    bearer = DpopErp(new_erp(), new_pair())
    answers = set()
    for one in (erp, bearer):
        stranger = DpopErp(Erp(one.erp.client_id, new_erp().client_secret), new_pair())
        for proof in (None, "x", one.proof()):
            response = stranger.post(proof)
            assert NONCE not in response
            answers.add((response.status_code, reason_of(response)))
    assert answers == {(400, "invalid_credentials")}
    assert not UsedProof.objects.exists()


def test_a_wrong_proof_counts_against_the_limit_of_the_client() -> None:
    erp = new_dpop_erp(logins_per_minute=1)
    assert reason_of(erp.post("x")) == "invalid_dpop_proof"
    assert reason_of(erp.post()) == "rate_limited"
    event = LoginEvent.objects.get()
    assert (event.reason, event.parameter) == ("invalid_dpop_proof", "DPoP")
    assert event.detail == "proof_unreadable"


@pytest.mark.parametrize("first", [{}, {"scope": "Unknown"}], ids=["issued", "refused"])
def test_a_proof_is_used_once(erp: DpopErp, first: dict[str, str]) -> None:
    proof = erp.proof()
    ended = reason_of(erp.post(proof, **first))
    assert ended == ("invalid_scope" if first else "")
    again = erp.post(proof)
    assert reason_of(again) == "invalid_dpop_proof"
    assert b"used before" in again.content
    assert events() == [ended, "invalid_dpop_proof"]
    assert UsedProof.objects.count() == 1


def test_a_login_with_an_assertion_and_a_proof_uses_both_once() -> None:
    key_erp = new_key_erp()
    SystemUser.objects.update(token_binding=TokenBinding.DPOP)
    erp = DpopErp(Erp(key_erp.client_id, ""), new_pair())
    assertion = key_erp.assertion()

    def log_in(proof: str | None = None, assertion: str = assertion) -> Any:
        response = key_erp.login(assertion, headers={"DPoP": proof or erp.proof()})
        erp.nonce = response.get(NONCE, erp.nonce)
        return response

    assert reason_of(log_in()) == "use_dpop_nonce"  # which uses neither up
    proof = erp.proof()
    assert claims_of(log_in(proof))["cnf"]
    assert reason_of(log_in()) == "invalid_credentials"  # the assertion was used before
    fresh = key_erp.assertion()
    assert reason_of(log_in(proof, fresh)) == "invalid_dpop_proof"
    assert reason_of(log_in(None, fresh)) == "invalid_credentials"  # used by a login that counted
    assert log_in(None, key_erp.assertion()).status_code == 200


ME, CREDENTIALS = "/api/v1/me", "/api/v1/credentials/current"
CHALLENGE = 'DPoP error="{error}", algs="ES256 Ed25519 EdDSA PS256"'


def refused(response: Any, error: str, says: str) -> None:
    body = json.loads(response.content)
    assert (response.status_code, body["error"]) == (401, error)
    assert response["WWW-Authenticate"] == CHALLENGE.format(error=error)
    assert says in body["error_description"]


def test_with_a_proof_it_opens_once_and_never_as_a_bearer_token(erp: DpopErp) -> None:
    token = erp.token()
    for path in (ME, CREDENTIALS):
        assert erp.call(path, token).status_code == 200
    proof = erp.api_proof(ME, token)
    assert erp.call(f"{ME}?query=1", token, proof=proof).status_code == 200
    refused(erp.call(ME, token, proof=proof), "invalid_dpop_proof", "used before")
    for headers in ({}, {"DPoP": erp.api_proof(ME, token)}):
        response = Client().get(ME, headers={"Authorization": f"Bearer {token}", **headers})
        refused(response, "invalid_token", "bound to a key")


def test_proofs_that_have_expired_do_not_fill_the_database(erp: DpopErp) -> None:
    token, now = erp.token(), datetime.now(UTC)
    ends = [now - timedelta(minutes=minutes) for minutes in (1.5, 60, 0.5)]
    expired, long_expired, recent = (
        UsedProof.objects.create(id=uuid4(), expires_at=end) for end in ends
    )
    assert erp.call(ME, token).status_code == 200
    left = UsedProof.objects.filter(pk__in=[expired.pk, long_expired.pk, recent.pk])
    assert list(left) == [recent], "and what another node may still accept is not forgotten"
