"""The signed answer of an introspection, and who gets which form (RFC 9701)."""

from typing import Any

import jwt
import pytest
from django.http import HttpResponse
from django.test import Client
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import KeySet
from pytest_django.fixtures import Settings

from tests.introspection.api import INACTIVE, Api, assert_headers, claims_of, revoke, token_of
from tests.introspection.test_callers import assert_error
from tests.support.answers import body_of
from tests.support.erp import Erp
from tokens.answers.accept import choose_media_type
from tokens.keys.ring import ALGORITHMS

JSON, SIGNED = "application/json", "application/token-introspection+jwt"
OFFERED = (JSON, SIGNED)


def signed(api: Api, token: str) -> HttpResponse:
    response = api.introspect(token, headers={"accept": SIGNED})
    assert response.status_code == 200
    assert_headers(response, SIGNED)
    return response


def verified_by_joserfc(response: HttpResponse) -> tuple[dict[str, Any], dict[str, Any]]:
    keys = KeySet.import_key_set(body_of(Client().get("/.well-known/jwks.json")))  # type: ignore[arg-type]
    token = joserfc_jwt.decode(response.content.decode(), keys, algorithms=list(ALGORITHMS))
    return token.header, token.claims


@pytest.mark.django_db
@pytest.mark.parametrize("alg", ALGORITHMS)
def test_the_signed_answer_has_these_members_only(
    api: Api, erp: Erp, settings: Settings, alg: str
) -> None:
    settings.SIGNING_ALGORITHM = alg
    token = token_of(erp)
    header, claims = verified_by_joserfc(signed(api, token))
    assert header == {
        "typ": "token-introspection+jwt",
        "alg": alg,
        "kid": jwt.get_unverified_header(token)["kid"],
    }
    iat = claims.pop("iat")
    assert abs(iat - claims_of(token)["iat"]) <= 60
    assert claims == {
        "iss": "http://127.0.0.1:8000",
        "aud": api.client_id,
        "token_introspection": {"active": True, "token_type": "Bearer", **claims_of(token)},
    }


@pytest.mark.django_db
def test_of_an_inactive_token_it_reveals_nothing(api: Api, erp: Erp) -> None:
    token = token_of(erp)
    revoke(erp, token)
    _header, claims = verified_by_joserfc(signed(api, token))
    assert claims["token_introspection"] == INACTIVE
    assert set(claims) == {"iss", "aud", "iat", "token_introspection"}


@pytest.mark.django_db
def test_a_caller_that_accepts_neither_form_is_told_so(api: Api, erp: Erp) -> None:
    answer = api.introspect(token_of(erp), headers={"accept": "text/html"})
    assert_error(answer, 406, "invalid_request", f"neither {JSON} nor {SIGNED}")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", JSON),
        (" ", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        (SIGNED, SIGNED),
        (SIGNED.upper(), SIGNED),
        (f"{SIGNED}, */*", JSON),
        (f"{SIGNED}, */*;q=0.5", SIGNED),
        (f"{JSON};q=0.5, {SIGNED};q=0.9", SIGNED),
        (f"{JSON};q=0.9, {SIGNED};q=0.5", JSON),
        (f"{JSON};q=0.9,{SIGNED};q=0.9", JSON),
        (f"{JSON};q=1, {SIGNED}", JSON),  # without a quality it is 1
        (f"{JSON};q=0, */*", SIGNED),
        (f"{JSON};q=0, {SIGNED};q=0", None),
        (f"application/*;q=0.2, {SIGNED} ; q = 0.3", SIGNED),
        (f"{JSON}; charset=utf-8", JSON),
        ("text/html", None),
        ("text/*, image/png", None),
        ("*/*;q=0", None),
        ("nonsense", None),
        (",,;;=", None),
        (f"{SIGNED};q=x, {JSON};q=0.1", JSON),
        (f"{SIGNED};q=2", None),
        (f"{SIGNED};q=nan", None),
        (f"{JSON};q=0.1, {JSON};q=0.8, {SIGNED};q=0.5", JSON),
    ],
)
def test_the_form_that_a_caller_likes_best_is_chosen(accept: str, chosen: str | None) -> None:
    assert choose_media_type(accept, OFFERED) == chosen
