"""A token that is bound to a key opens the service's own API with a proof alone (RFC 9449 7)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client

from tests.client_auth.key_erp import new_pair
from tests.dpop.dpop_erp import DpopErp, new_dpop_erp
from tests.introspection.api import token_of
from tests.support.erp import new_erp
from tokens.access_tokens.issuing import issue_access_token
from tokens.dpop.proof import hash_of_token
from tokens.models import UsedProof
from tokens.resource_server.possession import PRUNE_EVERY

pytestmark = pytest.mark.django_db
ME, CREDENTIALS = "/api/v1/me", "/api/v1/credentials/current"
CHALLENGE = 'DPoP error="{error}", algs="ES256 Ed25519 EdDSA PS256"'


@pytest.fixture
def erp() -> DpopErp:
    return new_dpop_erp()


def refused(response: Any, error: str, says: str) -> None:
    body = json.loads(response.content)
    assert (response.status_code, body["error"]) == (401, error)
    assert response["WWW-Authenticate"] == CHALLENGE.format(error=error)
    assert says in body["error_description"]


def api_proof(erp: DpopErp, token: str, path: str = ME, **changes: Any) -> str:
    right = {"htm": "GET", "htu": f"{settings.AUTH_URL}{path}", "nonce": None}
    return erp.proof(**right | {"ath": hash_of_token(token)} | changes)


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_with_a_proof_it_opens(algorithm: str) -> None:
    erp = new_dpop_erp(algorithm)
    token = erp.token()
    for path in (ME, CREDENTIALS):
        assert erp.call(path, token).status_code == 200
    assert erp.call(f"{ME}?query=1", token, proof=api_proof(erp, token)).status_code == 200


def test_sent_as_a_bearer_token_it_does_not(erp: DpopErp) -> None:
    token = erp.token()
    for headers in ({}, {"DPoP": api_proof(erp, token)}):
        response = Client().get(ME, headers={"Authorization": f"Bearer {token}", **headers})
        refused(response, "invalid_token", "bound to a key")


def test_a_bearer_token_is_not_accepted_as_a_bound_one(erp: DpopErp) -> None:
    bearer = new_erp()
    token = token_of(bearer)
    refused(erp.call(ME, token), "invalid_token", "not bound to a key")
    response = Client().get(ME, headers={"Authorization": f"Bearer {token}", "DPoP": "x"})
    assert response.status_code == 200


def test_a_thief_of_the_token_has_no_key(erp: DpopErp) -> None:
    token = erp.token()
    thief = DpopErp(new_erp(), new_pair())
    refused(thief.call(ME, token), "invalid_dpop_proof", "another key")
    stolen_key = thief.proof(  # the right key in the header, without its private part
        header={"jwk": erp.jwk},
        htm="GET",
        htu=f"{settings.AUTH_URL}{ME}",
        ath=hash_of_token(token),
    )
    refused(erp.call(ME, token, proof=stolen_key), "invalid_dpop_proof", "signature")


def test_the_proof_is_for_this_request_and_this_token(erp: DpopErp) -> None:
    token, other = erp.token(), erp.token()
    wrong: dict[str, dict[str, Any]] = {
        "not the method": {"htm": "POST"},
        "not the address": {"htu": f"{settings.AUTH_URL}{CREDENTIALS}"},
        "more than 60 seconds": {"iat": 1},
        "hash of the access token": {"ath": hash_of_token(other)},
        "must have iat": {"iat": None},
    }
    for says, claims in wrong.items():
        refused(
            erp.call(ME, token, proof=api_proof(erp, token, **claims)), "invalid_dpop_proof", says
        )
    no_hash = api_proof(erp, token, ath=None)
    refused(erp.call(ME, token, proof=no_hash), "invalid_dpop_proof", "hash of the access token")
    both = f"{api_proof(erp, token)}, {api_proof(erp, token)}"
    refused(erp.call(ME, token, proof=both), "invalid_dpop_proof", "more than once")


def test_a_request_without_a_proof_is_refused(erp: DpopErp) -> None:
    response = Client().get(ME, headers={"Authorization": f"DPoP {erp.token()}"})
    refused(response, "invalid_dpop_proof", "is not a signed JWT")


def test_a_proof_opens_once(erp: DpopErp) -> None:
    token = erp.token()
    proof = api_proof(erp, token)
    assert erp.call(ME, token, proof=proof).status_code == 200
    refused(erp.call(ME, token, proof=proof), "invalid_dpop_proof", "used before")


def test_proofs_that_have_expired_do_not_fill_the_database(erp: DpopErp) -> None:
    token, now = erp.token(), datetime.now(UTC)
    ends = [now - timedelta(minutes=minutes) for minutes in (1.5, 60, 0.5)]
    expired, long_expired, recent = (
        UsedProof.objects.create(id=uuid4(), expires_at=end) for end in ends
    )
    for _ in range(PRUNE_EVERY):
        assert erp.call(ME, token).status_code == 200
    left = UsedProof.objects.filter(pk__in=[expired.pk, long_expired.pk, recent.pk])
    assert list(left) == [recent], "and what another node may still accept is not forgotten"


def test_a_proof_that_is_refused_is_not_stored(erp: DpopErp) -> None:
    token = erp.token()
    before = UsedProof.objects.count()
    erp.call(ME, token, proof=api_proof(erp, token, ath="x"))
    DpopErp(new_erp(), new_pair()).call(ME, token)
    erp.system_user.credentials.update(revoked_at=datetime.now(UTC), slot=None)
    refused(erp.call(ME, token), "invalid_token", "was revoked on")
    assert UsedProof.objects.count() == before


def test_what_is_no_token_is_refused_in_the_words_of_the_scheme(erp: DpopErp) -> None:
    refused(erp.call(ME, "x.y.z"), "invalid_token", "not issued by this service")
    response = Client().get(ME, headers={"Authorization": "DPoP a b"})
    refused(response, "invalid_token", "must be DPoP and one token")
    response = Client().get(ME, headers={"Authorization": "Basic x"})
    assert response["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_a_token_with_a_confirmation_of_another_kind_is_refused(
    erp: DpopErp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody ignores a `cnf` that this service does not know."""
    from dataclasses import replace

    from taxpayers.facts.token_binding import Confirmation, TokenBinding
    from tests.tokens.test_protected_api import authorization

    granted = replace(authorization(), confirmation=Confirmation(TokenBinding.TLS, "x"))
    token = issue_access_token(granted, jti=uuid4(), status_index=0).encoded
    response = Client().get(ME, headers={"Authorization": f"Bearer {token}"})
    assert (response.status_code, "certificate" in str(response.content)) == (401, True)
