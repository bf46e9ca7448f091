"""A login with a private key: what else than with any other credential, and used once."""

from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from taxpayers.models import RateLimitCounter, SystemUser
from tests.client_auth.key_erp import JWT_BEARER, KeyErp, new_key_erp, new_pair, signed_as
from tests.introspection.api import INACTIVE, REVOKE, Api, post, token_of
from tests.self_service.calls import CREDENTIALS, REVOKE_LAST, call
from tests.support.answers import body_of
from tests.support.erp import assert_refused, new_erp
from tokens.client_auth import compact_jws, private_key_jwt
from tokens.models import LoginEvent, UsedAssertion

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> KeyErp:
    return new_key_erp()


def test_eddsa_is_accepted_by_its_new_name_too() -> None:
    """RFC 9864: oauth4webapi, openid-client and jose send `Ed25519`."""
    erp = new_key_erp("EdDSA")
    for name in ("EdDSA", "Ed25519"):
        assert erp.login(signed_as(name, erp.assertion(), erp.pair)).status_code == 200


def test_an_assertion_logs_in_once_and_staff_see_why(erp: KeyErp) -> None:
    assertion = erp.assertion()
    assert erp.login(assertion).status_code == 200
    again = erp.login(assertion)
    assert_refused(
        again,
        reason="invalid_credentials",
        says="its jti was used before",
        fixed_by="The developer of the ERP system",
    )
    event = LoginEvent.objects.get(pk=again["correlationId"])
    assert (event.detail, event.secret_id) == ("used_before", erp.system_user.credentials.get().pk)
    assert RateLimitCounter.objects.get(system_user=erp.system_user).used == 1


def test_a_stranger_cannot_use_up_a_jti(erp: KeyErp) -> None:
    jti = str(uuid4())
    forged = erp.assertion(pair=new_pair(), header={"kid": erp.pair.kid}, jti=jti)
    assert erp.login(forged).status_code == 400
    assert not UsedAssertion.objects.exists()
    assert erp.login(erp.assertion(jti=jti)).status_code == 200


def verifications(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    found: list[bytes] = []
    verify = compact_jws.is_signature

    def noting(key: Any, made: bytes, signed: bytes) -> bool:
        found.append(signed)
        return verify(key, made, signed)

    monkeypatch.setattr(private_key_jwt, "is_signature", noting)
    return found


@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "EdDSA"])
def test_each_login_costs_one_verification_also_of_a_stranger(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    erp = new_key_erp(algorithm)
    assert erp.login().status_code == 200  # from now on this node remembers it
    found = verifications(monkeypatch)
    other, known = new_pair(algorithm), {"kid": erp.pair.kid}
    strangers = [
        KeyErp(user, new_pair(algorithm))
        for user in (new_erp().system_user, SystemUser(client_id=new_erp().client_id))
    ]
    for sent in (
        *(erp.assertion(), erp.assertion(pair=other), erp.assertion(pair=other, header=known)),
        *(stranger.assertion() for stranger in strangers),
    ):
        found.clear()
        erp.login(sent)
        assert len(found) == 1


def proof(assertion: str) -> dict[str, str]:
    return {"client_assertion_type": JWT_BEARER, "client_assertion": assertion}


def test_an_assertion_ends_a_token_or_logs_in_once(api: Api, erp: KeyErp) -> None:
    token, assertion = token_of(erp), erp.assertion()
    assert body_of(api.introspect(token))["active"] is True
    assert post(REVOKE, {"token": token, **proof(assertion)}).status_code == 200
    assert body_of(api.introspect(token)) == INACTIVE
    assert erp.login(assertion).status_code == 400
    used = erp.assertion()
    assert erp.login(used).status_code == 200
    refused = post(REVOKE, {"token": token, **proof(used)})
    assert (refused.status_code, body_of(refused)["error"]) == (401, "invalid_client")


def test_the_same_rules_hold_and_a_stranger_ends_nothing(api: Api, erp: KeyErp) -> None:
    token = token_of(erp)
    for wrong in (
        erp.assertion(aud=f"{settings.AUTH_URL}/connect/revocation"),
        erp.assertion(pair=new_pair(), header={"kid": erp.pair.kid}),
    ):
        assert post(REVOKE, {"token": token, **proof(wrong)}).status_code == 401
    assert body_of(api.introspect(token))["active"] is True


def test_assertions_that_end_tokens_are_limited_as_logins_are_and_those_of_others_are_not(
    erp: KeyErp,
) -> None:
    """Each that is used is a row."""
    limit, other = erp.system_user.logins_per_minute, new_key_erp()
    answers = [post(REVOKE, {"token": "x", **proof(erp.assertion())}) for _ in range(limit + 2)]
    assert [answer.status_code for answer in answers] == [200] * limit + [429] * 2
    assert UsedAssertion.objects.count() == limit
    assert "Too many tokens were ended" in body_of(answers[-1])["error_description"]
    assert 0 < int(answers[-1]["Retry-After"]) <= 60
    assert post(REVOKE, {"token": "x", **proof(other.assertion())}).status_code == 200
    assert erp.login().status_code == 200


def test_it_ends_its_key_and_then_nothing_logs_in_with_it(api: Api, erp: KeyErp) -> None:
    token = token_of(erp)
    assert call("DELETE", CREDENTIALS, token).status_code == 409
    assert erp.login().status_code == 200
    answer = call("DELETE", REVOKE_LAST, token)
    assert body_of(answer)["revoked"]["hint"] == erp.pair.kid[-4:]
    assert erp.login().status_code == 400
    assert body_of(api.introspect(token)) == INACTIVE
