"""A client that logs in with a private key ends its own tokens with one; an API has none."""

import pytest
from django.conf import settings

from tests.client_auth.key_erp import JWT_BEARER, KeyErp, new_key_erp, new_pair
from tests.introspection.api import INACTIVE, REVOKE, Api, post, token_of
from tests.self_service.calls import CREDENTIALS, REVOKE_LAST, call
from tests.support.answers import body_of
from tokens.models import UsedAssertion

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> KeyErp:
    return new_key_erp()


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
