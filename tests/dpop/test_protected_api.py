"""A token that is bound to a key opens the service's own API with a proof alone (RFC 9449 7)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client

from tests.dpop.dpop_erp import DpopErp, new_dpop_erp
from tokens.dpop.proof import hash_of_token
from tokens.models import UsedProof

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


def api_proof(erp: DpopErp, token: str) -> str:
    address, of_token = f"{settings.AUTH_URL}{ME}", hash_of_token(token)
    return erp.proof(htm="GET", htu=address, ath=of_token, nonce=None)


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
    assert erp.call(ME, token).status_code == 200
    left = UsedProof.objects.filter(pk__in=[expired.pk, long_expired.pk, recent.pk])
    assert list(left) == [recent], "and what another node may still accept is not forgotten"
