"""The modules of the OpenID Foundation's FAPI2 final plan, by their names, on the wire.

Those that apply to private_key_jwt, without `fapi2-security-profile-final-`. Those of proofs and of
certificates are the checks in tests/dpop/ and tests/certificates/; each check of an assertion to
the character is in test_assertion_form.py and test_signatures.py.
"""

import json
import time
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.models import SystemUser
from tests.client_auth.key_erp import KeyErp, new_key_erp, new_pair
from tests.dpop.dpop_erp import NONCE, DpopErp
from tests.support.erp import Erp, claims_of, description_of

pytestmark = pytest.mark.django_db
ME, ISSUER = "/api/v1/me", settings.AUTH_URL
MOMENTS = ("exp", "nbf", "iat")


def error_of(response: Any) -> tuple[int, str]:
    return response.status_code, json.loads(response.content)["error"]


def later(changes: dict[str, Any]) -> dict[str, Any]:
    """Moments are given in seconds from now."""
    now = int(time.time())
    moments = {name: now + changes[name] for name in MOMENTS if changes.get(name) is not None}
    return changes | moments


# --- private_key_jwt ------------------------------------------------------------------------------


@pytest.fixture
def erp() -> KeyErp:
    return new_key_erp()


# Module, what is different in the assertion, and what the answer says; nothing: there is a token.
ASSERTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("ensure-client-assertion-with-iss-aud-succeeds", {"aud": ISSUER}, ""),
    ("ensure-client-assertion-with-wrong-aud-fails", {"aud": f"{ISSUER}/connect/token"}, "issuer"),
    ("ensure-client-assertion-with-array-of-audiences", {"aud": [ISSUER]}, ""),
    ("ensure-client-assertion-with-several-audiences", {"aud": [ISSUER, "x"]}, "the issuer"),
    ("ensure-client-assertion-with-exp-is-5-minutes-in-past-fails", {"exp": -300}, "has expired"),
    ("ensure-client-assertion-with-exp-too-far-ahead-fails", {"exp": 360}, "5 minutes ahead"),
    ("ensure-client-assertion-without-exp-fails", {"exp": None}, "must have exp"),
    ("ensure-client-assertion-with-nbf-8-seconds-in-the-future-succeeds", {"nbf": 8}, ""),
    ("ensure-client-assertion-with-iat-8-seconds-in-the-future-succeeds", {"iat": 8}, ""),
    ("ensure-client-assertion-with-nbf-60-seconds-in-the-future-fails", {"nbf": 60}, "future"),
    ("ensure-client-assertion-with-iat-60-seconds-in-the-future-fails", {"iat": 60}, "future"),
    ("ensure-client-assertion-without-iat-succeeds", {"iat": None}, ""),
    ("ensure-client-assertion-without-jti-fails", {"jti": None}, "must have a jti"),
    ("ensure-client-assertion-with-other-iss-fails", {"iss": "x"}, "iss and sub"),
    ("ensure-client-assertion-without-sub-fails", {"sub": None}, "iss and sub"),
    ("ensure-client-assertion-with-crit-fails", {"header": {"crit": ["exp"]}}, "crit"),
    ("ensure-client-assertion-without-kid-fails", {"header": {"kid": ""}}, "kid"),
    ("ensure-client-assertion-of-another-type-fails", {"header": {"typ": "at+jwt"}}, "typ in the"),
    ("ensure-client-assertion-of-older-libraries-succeeds", {"header": {"typ": "JWT"}}, ""),
    ("ensure-client-assertion-without-typ-succeeds", {"header": {"typ": None}}, ""),
    ("ensure-long-client-assertion-fails", {"padding": "x" * 4096}, "longer than 4096"),
    (
        "ensure-client-assertion-with-alg-none-fails",
        {"algorithm": "none", "key": ""},
        "PS256, ES256 or EdDSA",
    ),
    (
        "ensure-client-assertion-with-a-shared-secret-fails",
        {"algorithm": "HS256", "key": "k" * 32},
        "PS256, ES256 or EdDSA",
    ),
    ("ensure-client-assertion-with-another-key-fails", {"pair": "another"}, "not accepted"),
]


@pytest.mark.parametrize(
    ("changes", "says"), [row[1:] for row in ASSERTIONS], ids=[row[0] for row in ASSERTIONS]
)
def test_client_assertion(erp: KeyErp, changes: dict[str, Any], says: str) -> None:
    if "pair" in changes:
        changes = {"pair": new_pair(kid=erp.pair.kid)}
    response = erp.login(erp.assertion(**later(changes)))
    if says:
        assert error_of(response) == (400, "invalid_client")
        assert says in description_of(response)
    else:
        assert response.status_code == 200


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_client_credentials_happy_flow(algorithm: str) -> None:
    assert new_key_erp(algorithm).login().status_code == 200


def test_ensure_signed_client_assertion_with_rs256_fails() -> None:
    erp = new_key_erp("PS256")
    refused = erp.login(erp.assertion(algorithm="RS256"))
    assert "PS256, ES256 or EdDSA" in description_of(refused)


def test_ensure_client_assertion_with_invalid_signature_and_what_is_no_jwt_fails(
    erp: KeyErp,
) -> None:
    signed, _, signature = erp.assertion().rpartition(".")
    wrong = (signature[:-8] + signature[:8], signature[:-4], "", "A" * len(signature))
    for assertion in (*(f"{signed}.{each}" for each in wrong), "x", "é.é.é", "W10.W10.W10"):
        response = erp.login(assertion)
        assert error_of(response) == (400, "invalid_client")
        assert "client_assertion" in description_of(response)


def test_ensure_client_id_in_token_endpoint_is_that_of_the_assertion(erp: KeyErp) -> None:
    response = erp.login(client_id=new_key_erp().client_id)
    assert "is not the client_id in the form" in description_of(response)


def test_ensure_client_assertion_of_another_client_fails(erp: KeyErp) -> None:
    other = new_key_erp()
    foreign = erp.assertion(iss=other.client_id, sub=other.client_id)
    assert "is not accepted" in description_of(other.login(foreign))


def test_ensure_client_assertion_jti_reuse_fails_and_no_answer_names_it(erp: KeyErp) -> None:
    jti = str(uuid4())
    assertion = erp.assertion(jti=jti)
    answers = [erp.login(erp.assertion(jti=jti, aud="x")), erp.login(assertion)]
    answers.append(erp.login(assertion))
    assert [answer.status_code for answer in answers] == [400, 200, 400]
    assert "jti was used before" in description_of(answers[-1])
    assert not any(jti.encode() in answer.content for answer in answers)


# --- DPoP -----------------------------------------------------------------------------------------


class FapiClient:
    """It logs in with private_key_jwt, and its tokens are bound to another key."""

    def __init__(self, algorithm: str = "ES256") -> None:
        self.keys: KeyErp = new_key_erp(algorithm)
        SystemUser.objects.update(token_binding=TokenBinding.DPOP)
        self.dpop = DpopErp(Erp(self.keys.client_id, ""), new_pair(algorithm))
        self.dpop.nonce = self.login()[NONCE]

    def login(self) -> Any:
        return self.keys.login(headers={"DPoP": self.dpop.proof()})


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_client_credentials_happy_flow_with_dpop(algorithm: str) -> None:
    client = FapiClient(algorithm)
    response = client.login()
    assert json.loads(response.content)["token_type"] == "DPoP"
    assert set(claims_of(response)["cnf"]) == {"jkt"}
    assert client.dpop.call(ME, json.loads(response.content)["access_token"]).status_code == 200


def test_ensure_holder_of_key_required() -> None:
    client = FapiClient()
    assert error_of(client.keys.login()) == (400, "invalid_dpop_proof")
    token = json.loads(client.login().content)["access_token"]
    for scheme in ("Bearer", "DPoP"):
        answer = Client().get(ME, headers={"Authorization": f"{scheme} {token}"})
        assert answer.status_code == 401
