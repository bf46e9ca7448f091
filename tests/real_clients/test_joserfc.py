"""joserfc, a second JWT library, verifies each kind of JWT by the published keys (RFC 8725)."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from joserfc import jwt
from joserfc.jwk import KeySet
from pytest_django.fixtures import Settings

from tests.introspection.api import token_of
from tests.status_lists.reader import reference_of
from tests.support.erp import Erp
from tokens.keys.ring import ALGORITHMS

pytestmark = pytest.mark.django_db

REQUIRED: dict[str, Any] = {"essential": True}


@pytest.fixture(params=ALGORITHMS)
def algorithm(request: pytest.FixtureRequest, settings: Settings) -> str:
    settings.SIGNING_ALGORITHM = request.param
    chosen: str = request.param
    return chosen


def verified(
    encoded: str, algorithm: str, typ: str, **claims: dict[str, Any]
) -> tuple[KeySet, dict[str, Any]]:
    """The published keys and the claims; fails unless all of it is right."""
    keys = KeySet.import_key_set(json.loads(Client().get("/.well-known/jwks.json").content))
    token = jwt.decode(encoded, keys, algorithms=[algorithm])
    assert token.header == {"typ": typ, "alg": algorithm, "kid": keys.keys[0].thumbprint()}
    issuer = {"essential": True, "value": "http://127.0.0.1:8000"}
    jwt.JWTClaimsRegistry(iss=issuer, iat=REQUIRED, **claims).validate(token.claims)  # type: ignore[arg-type]
    return keys, token.claims


def test_an_access_token(algorithm: str, erp: Erp) -> None:
    audience = {"essential": True, "value": "InvoicingAPI"}
    subject = {"essential": True, "value": erp.tin}
    token = token_of(erp)
    verified(token, algorithm, "at+jwt", aud=audience, sub=subject, exp=REQUIRED, jti=REQUIRED)


def test_a_status_list(algorithm: str, erp: Erp) -> None:
    named, _ = reference_of(token_of(erp))
    encoded = Client().get(urlsplit(named).path).content.decode()
    subject = {"essential": True, "value": named}
    _, claims = verified(encoded, algorithm, "statuslist+jwt", sub=subject, exp=REQUIRED)
    assert claims["status_list"]["bits"] == 1
