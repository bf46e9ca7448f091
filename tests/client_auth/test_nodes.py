"""What a node remembers of clients with keys: nothing for strangers, and never against a change."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from taxpayers.models import Credential, SystemUser
from taxpayers.services import (
    block_system_user,
    register_client_keys,
    revoke_credential,
    use_client_secret,
)
from tests.client_auth.key_erp import BY, KeyErp, jwks, new_key_erp, new_pair
from tests.support.erp import new_erp
from tests.support.factories import SystemUserFactory
from tests.support.queries import statements_sent
from tokens.client_auth import private_key_jwt, signature
from tokens.models import LoginEvent
from tokens.operations.node import this_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def erp() -> KeyErp:
    return new_key_erp(logins_per_minute=0)


def reason(response: Any) -> str:
    return LoginEvent.objects.get(pk=response["correlationId"]).reason


def now() -> dict[str, Any]:
    return {"by": BY, "at": timezone.now()}


def key_of(erp: KeyErp) -> Credential:
    return erp.system_user.credentials.get(hint=erp.pair.kid[-4:])


CHANGES: dict[str, tuple[Callable[[KeyErp], object], str]] = {
    "block": (
        lambda erp: block_system_user(system_user=erp.system_user, reason="r", **now()),
        "system_user_blocked",
    ),
    "key removed": (
        lambda erp: revoke_credential(credential=key_of(erp), reason="r", **now()),
        "secret_revoked",
    ),
    "key removed by SQL": (lambda erp: key_of(erp).delete(), "invalid_credentials"),
    "another key of the same name by SQL": (
        lambda erp: Credential.objects.filter(pk=key_of(erp).pk).update(
            public_jwk=json.dumps(new_pair(kid=erp.pair.kid).public_jwk)
        ),
        "invalid_credentials",
    ),
    "method": (
        lambda erp: use_client_secret(system_user=erp.system_user, reason="r", **now()),
        "invalid_credentials",
    ),
    "method by SQL": (
        lambda erp: SystemUser.objects.filter(pk=erp.system_user.pk).update(
            token_endpoint_auth_method=""
        ),
        "invalid_credentials",
    ),
    "key expired by SQL": (
        lambda erp: Credential.objects.filter(pk=key_of(erp).pk).update(
            created_at=timezone.now() - timedelta(days=3),
            expires_at=timezone.now() - timedelta(days=1),
        ),
        "secret_expired",
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES)
def test_the_next_login_obeys_a_change(
    erp: KeyErp, change: Callable[[KeyErp], object], expected: str
) -> None:
    for _ in range(2):
        assert erp.login().status_code == 200
    change(erp)
    assert reason(erp.login()) == expected


def test_a_new_key_logs_in_at_once_where_it_was_refused_before(erp: KeyErp) -> None:
    pair = new_pair()
    assert reason(erp.login(erp.assertion(pair=pair))) == "invalid_credentials"
    register_client_keys(system_user=erp.system_user, keys=jwks(pair), **now())
    assert erp.login(erp.assertion(pair=pair)).status_code == 200


@pytest.mark.postgresql
def test_a_login_of_a_client_that_is_remembered_is_one_statement(erp: KeyErp) -> None:
    assert erp.login().status_code == 200
    with statements_sent() as words:
        assert erp.login().status_code == 200
    assert words == ["WITH"]


@pytest.mark.postgresql
def test_a_stranger_fills_no_memory_of_a_node(erp: KeyErp, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[Any] = []
    monkeypatch.setattr(
        type(this_node().local_facts), "store", lambda self, query, facts: stored.append(query)
    )
    forged = erp.assertion(pair=new_pair(), header={"kid": erp.pair.kid})
    assert reason(erp.login(forged, headers={"onbehalfof": "C1234567890"})) == "invalid_credentials"
    assert stored == []
    assert erp.login().status_code == 200
    assert {query.client_id for query in stored} == {erp.client_id}


def verifications(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    found: list[bytes] = []
    verify = signature.is_signature

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
    other, unknown = new_pair(algorithm), KeyErp(new_erp().system_user, new_pair(algorithm))
    for sent in (
        erp.assertion(),
        erp.assertion(pair=other),
        erp.assertion(pair=other, header={"kid": erp.pair.kid}),
        unknown.assertion(),
    ):
        found.clear()
        erp.login(sent)
        assert len(found) == 1


def test_what_is_refused_before_the_signature_costs_no_verification(
    erp: KeyErp, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verifications(monkeypatch)
    for claims in ({"aud": "x"}, {"exp": 1}, {"jti": None}, {"iss": "x"}, {"nbf": 9e9}):
        assert erp.login(erp.assertion(**claims)).status_code == 400
    assert found == []


def test_an_unknown_client_and_a_wrong_signature_cost_the_same_queries(erp: KeyErp) -> None:
    assert erp.login().status_code == 200
    unknown = KeyErp(SystemUserFactory.build(), new_pair())
    found = []
    for sent in (
        unknown.assertion(),
        erp.assertion(pair=unknown.pair),
        erp.assertion(pair=unknown.pair, header={"kid": erp.pair.kid}),
    ):
        with statements_sent() as words:
            assert erp.login(sent).status_code == 400
        found.append(words)
    assert found[0] == found[1] == found[2]


@pytest.mark.postgresql
def test_a_client_over_its_limit_costs_no_query() -> None:
    erp = new_key_erp(logins_per_minute=1)
    assert erp.login().status_code == 200
    assert erp.login().status_code == 429
    with statements_sent() as words:
        assert erp.login().status_code == 429
    assert words == []
