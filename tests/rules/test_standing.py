"""The state of a system user that staff see is what the decision about its logins says."""

from itertools import combinations_with_replacement
from typing import Any

import pytest
from msgspec.structs import replace

from taxpayers.facts.token_binding import TokenBinding
from taxpayers.facts.values import Facts
from taxpayers.rules import AuthorizationRequest, Refused, decide
from taxpayers.standing.standing import standing_of
from tests.rules.states import (
    ALLOWED_PERMISSIONS,
    AT,
    BLOCKED_AT,
    EXPIRES_AT,
    HAS_ALLOWED_TAXPAYERS,
    HELD_SCOPES,
    KNOWN_SCOPES,
    ONLY_ON_BEHALF,
    ROLE,
    SECRET,
    TAXPAYER_IS_ACTIVE,
    clients,
    secrets,
)

SECRETS = [replace(one.facts, id=number) for number, one in enumerate(secrets(SECRET), start=1)]
PAIRS = [(), *((one,) for one in SECRETS), *combinations_with_replacement(SECRETS, 2)]
CLIENT = (
    *(BLOCKED_AT, EXPIRES_AT, TAXPAYER_IS_ACTIVE, ROLE[:1], HELD_SCOPES),
    *(ALLOWED_PERMISSIONS[:1], HAS_ALLOWED_TAXPAYERS[:1], ONLY_ON_BEHALF[:1]),
)
CLIENTS = [one.facts for one in clients(CLIENT)]


def refusal_of(facts: Facts) -> Refused | None:
    try:
        decide(AuthorizationRequest(facts, None, KNOWN_SCOPES, AT))
    except Refused as refused:
        return refused
    return None


def test_it_gets_a_token_exactly_if_a_login_with_one_of_its_secrets_would() -> None:
    for client in CLIENTS:
        decided = {secret.id: refusal_of(Facts(client, secret)) for secret in SECRETS}
        for pair in PAIRS:
            standing = standing_of(client, pair, KNOWN_SCOPES, AT)
            assert standing.gets_token == any(decided[s.id] is None for s in pair), (client, pair)


UNRELATED: list[dict[str, Any]] = [
    *({"token_binding": binding} for binding in TokenBinding),
    {"allowed_permissions": ("view",), "has_allowed_taxpayers": True},
    {"only_on_behalf": True},
]


@pytest.mark.parametrize("changes", UNRELATED, ids=str)
def test_what_it_must_prove_and_may_do_for_others_stops_no_system_user(
    changes: dict[str, Any],
) -> None:
    """What it will prove when it logs in is not known now."""
    for client in CLIENTS:
        for pair in ((), SECRETS):
            before, after = (
                standing_of(one, pair, KNOWN_SCOPES, AT)
                for one in (client, replace(client, **changes))
            )
            assert after.gets_token == before.gets_token
            assert after.valid_credentials == before.valid_credentials
            assert [r.reason for r in after.refusals] == [r.reason for r in before.refusals]


def test_the_valid_secrets_are_those_that_the_rules_pass_whatever_else_is_wrong() -> None:
    passing = {secret.id for secret in SECRETS if refusal_of(Facts(CLIENTS[0], secret)) is None}
    assert 0 < len(passing) < len(SECRETS)
    for client in CLIENTS:
        found = standing_of(client, SECRETS, KNOWN_SCOPES, AT).valid_credentials
        assert {secret.id for secret in found} == passing
        assert list(found) == sorted(found, key=lambda secret: secret.expires_at, reverse=True)


def test_the_first_refusal_is_the_one_that_a_login_with_a_valid_secret_gets() -> None:
    valid = next(s for s in SECRETS if refusal_of(Facts(CLIENTS[0], s)) is None)
    for client in CLIENTS:
        refused = refusal_of(Facts(client, valid))
        for pair in ((valid,), ()):  # the same whether it has a secret or not
            refusals = standing_of(client, pair, KNOWN_SCOPES, AT).refusals
            first = refusals[0] if refusals else None
            assert (first and (first.reason, first.since)) == (
                refused and (refused.reason, refused.since)
            )
