"""The modules of the OpenID Foundation's FAPI2 final plan about DPoP, by their names.

Those that apply to client credentials with private_key_jwt; each test has the name of its module,
without `fapi2-security-profile-final-`. The checks of proofs one by one: tests/dpop/.
"""

import json
import time
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from tests.client_auth.key_erp import KeyErp, new_key_erp, new_pair
from tests.dpop.dpop_erp import NONCE, DpopErp
from tests.support.erp import Erp, claims_of
from tokens.dpop.proof import hash_of_token

pytestmark = pytest.mark.django_db
ME = "/api/v1/me"


class FapiClient:
    """It logs in with private_key_jwt, and its tokens are bound to another key."""

    def __init__(self, algorithm: str = "ES256") -> None:
        self.keys: KeyErp = new_key_erp(algorithm)
        SystemUser.objects.update(token_binding=TokenBinding.DPOP)
        self.dpop = DpopErp(Erp(self.keys.client_id, ""), new_pair(algorithm))
        self.dpop.nonce = self.login()[NONCE]

    def login(self, proof: str | None = None, **headers: str) -> Any:
        sent = {"DPoP": self.dpop.proof() if proof is None else proof} | headers
        return self.keys.login(headers=sent)

    def token(self) -> str:
        token: str = json.loads(self.login().content)["access_token"]
        return token


@pytest.fixture
def client() -> FapiClient:
    return FapiClient()


def now() -> int:
    return int(time.time())


def assert_invalid(response: Any) -> None:
    assert (response.status_code, json.loads(response.content)["error"]) == (
        *(400, "invalid_dpop_proof"),
    )


def test_client_credentials_happy_flow() -> None:
    for algorithm in ("ES256", "PS256", "EdDSA"):
        client = FapiClient(algorithm)
        response = client.login()
        assert json.loads(response.content)["token_type"] == "DPoP"
        assert set(claims_of(response)["cnf"]) == {"jkt"}
        assert client.dpop.call(ME, json.loads(response.content)["access_token"]).status_code == 200


def test_ensure_holder_of_key_required(client: FapiClient) -> None:
    assert_invalid(client.keys.login())
    token = client.token()
    as_bearer = Client().get(ME, headers={"Authorization": f"Bearer {token}"})
    without_proof = Client().get(ME, headers={"Authorization": f"DPoP {token}"})
    assert (as_bearer.status_code, without_proof.status_code) == (401, 401)


def test_ensure_dpopproof_with_iat_10seconds_before_succeeds(client: FapiClient) -> None:
    assert client.login(client.dpop.proof(iat=now() - 10)).status_code == 200


def test_ensure_dpopproof_with_iat_10seconds_after_succeeds(client: FapiClient) -> None:
    assert client.login(client.dpop.proof(iat=now() + 10)).status_code == 200


def test_check_dpop_proof_nbf_exp(client: FapiClient) -> None:
    """A proof may have them; they decide nothing."""
    assert client.login(client.dpop.proof(nbf=now(), exp=now() + 60)).status_code == 200


NEGATIVE: dict[str, dict[str, Any]] = {
    "another htm": {"htm": "GET"},
    "another htu": {"htu": "https://other.example.org/connect/token"},
    "iat an hour ago": {"iat": -3600},
    "iat in an hour": {"iat": 3600},
    "no jti": {"jti": None},
    "no htm": {"htm": None},
    "no htu": {"htu": None},
    "no iat": {"iat": None},
    "another typ": {"header": {"typ": "JWT"}},
    "no key": {"header": {"jwk": None}},
    "another key": {"pair": "other"},
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_dpop_negative_tests(client: FapiClient, name: str) -> None:
    changes = dict(NEGATIVE[name])
    if changes.get("iat"):
        changes["iat"] += now()
    if "pair" in changes:
        changes["pair"] = new_pair()
    assert_invalid(client.login(client.dpop.proof(**changes)))
    token = client.token()
    right = {"htm": "GET", "htu": f"{settings.AUTH_URL}{ME}", "ath": hash_of_token(token)}
    if changes.get("htm") == "GET":
        changes["htm"] = "POST"
    proof = client.dpop.proof(**right | changes)
    assert client.dpop.call(ME, token, proof=proof).status_code == 401


def test_dpop_negative_tests_private_key_and_reuse(client: FapiClient) -> None:
    private = {k: v for k, v in client.dpop.pair.private_jwk.items() if k != "kid"}
    assert_invalid(client.login(client.dpop.proof(header={"jwk": private})))
    proof = client.dpop.proof()
    assert client.login(proof).status_code == 200
    assert_invalid(client.login(proof))
