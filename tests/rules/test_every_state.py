"""The decision about a login, proved for every state of the facts, not sampled (contract 1 and 4).

`states` holds the facts and what the contract says about them, independently of the code.
"""

from collections import Counter
from functools import cache
from math import prod

import pytest

from taxpayers.rules import Refused, RegistryReason
from tests.rules.states import (
    ASKED_SCOPES,
    CLIENT,
    REPRESENTED,
    SECRET,
    Asked,
    Dimensions,
    Granted,
    Outcome,
    Refusal,
    State,
    allows,
    clients,
    decided,
    expected,
    refusal,
    secrets,
    states,
    taxpayers,
)
from tokens.explanation import CheckState, results_of
from tokens.refusals.table import Check

each_login = pytest.mark.parametrize(
    "represented", [(), REPRESENTED], ids=["as taxpayer", "on behalf of another"]
)
each_asked = pytest.mark.parametrize(
    "asked", ASKED_SCOPES, ids=["no scope", "known scopes", "an unknown scope"]
)

BINDING_REASONS = {"dpop_proof_missing", "certificate_missing"}
# The table of the contract from the secret on, by the checks that staff see.
CONTRACT = [
    (Check.SECRET_EXPIRY, {"secret_expired"}),
    (Check.SECRET_REVOCATION, {"secret_revoked"}),
    (Check.RATE_LIMIT, {"rate_limited"}),  # tests/rules/test_order.py
    (Check.TOKEN_BINDING, BINDING_REASONS),  # tests/rules/test_every_binding.py
    (Check.BLOCK, {"system_user_blocked"}),
    (Check.SYSTEM_USER_EXPIRY, {"system_user_expired"}),
    (Check.TAXPAYER, {"taxpayer_inactive"}),
    (Check.INTERMEDIARY, {"not_an_intermediary"}),
    (Check.INTERMEDIARY_ACTIVE, {"intermediary_inactive"}),
    (Check.PERMISSION, {"no_permission"}),
    (
        Check.PERMISSION_IN_FORCE,
        {"permission_not_yet_valid", "permission_expired", "permission_revoked"},
    ),
    (Check.SCOPE, {"invalid_scope"}),
]
ONLY_ON_BEHALF = {
    *(Check.INTERMEDIARY, Check.INTERMEDIARY_ACTIVE),
    *(Check.PERMISSION, Check.PERMISSION_IN_FORCE),
}
PLACE = {reason: place for place, (_, reasons) in enumerate(CONTRACT) for reason in reasons}


@cache
def all_states(represented: Dimensions) -> list[State]:
    return list(states(represented=represented))


@cache
def outcomes(represented: Dimensions, asked: Asked) -> list[Outcome]:
    """What the service decides in each state, in their order."""
    found: dict[Outcome, Outcome] = {}  # each once: there are many states
    decisions = (decided(state, asked) for state in all_states(represented))
    return [found.setdefault(outcome, outcome) for outcome in decisions]


def test_the_states_are_all_combinations_of_all_values() -> None:
    parts = secrets(SECRET), clients(CLIENT), taxpayers(REPRESENTED)
    assert [len(part) for part in parts] == [12, 432, 48]
    assert [len(set(part)) for part in parts] == [12, 432, 48]
    assert len(all_states(())) == 12 * 432
    assert len(all_states(REPRESENTED)) == 12 * 432 * 48


@each_asked
@each_login
def test_every_state_has_the_outcome_of_the_contract(represented: Dimensions, asked: Asked) -> None:
    """The reason is the first one in the contract's order, with its own date; or it is a token."""
    for state, found in zip(all_states(represented), outcomes(represented, asked), strict=True):
        assert found == expected(state, asked), state


@each_asked
@each_login
def test_a_restriction_never_grants_more(represented: Dimensions, asked: Asked) -> None:
    """Whatever the other facts are: no token instead of a refusal, no further scope or code.

    One step on each fact is enough: what grants no more than the state before it, grants no more
    than any before that.
    """
    dimensions = (*SECRET, *CLIENT, *represented)
    found = outcomes(represented, asked)
    allowed = [allows(outcome) for outcome in found]
    for place, values in enumerate(dimensions):
        distance = prod(len(others) for others in dimensions[place + 1 :])
        last = distance * (len(values) - 1)
        for block in range(0, len(allowed), distance * len(values)):
            for number in range(block, block + last):
                assert allowed[number + distance] <= allowed[number], (
                    all_states(represented)[number],
                    all_states(represented)[number + distance],
                )


@each_asked
@each_login
def test_the_explanation_agrees_with_the_decision_in_every_state(
    represented: Dimensions, asked: Asked
) -> None:
    """Passed up to the reason, which failed; what comes after it was not reached."""
    is_on_behalf = bool(represented)
    for state, outcome in zip(all_states(represented), outcomes(represented, asked), strict=True):
        wrong = refusal(state, asked)
        failed = PLACE[wrong.reason] if wrong else None
        assert explained(outcome, is_on_behalf) == right_explanation(failed, is_on_behalf), state


Explanation = tuple[tuple[Check, CheckState], ...]


@cache
def explained(outcome: Outcome, is_on_behalf: bool) -> Explanation:
    """What staff are shown."""
    refused = None
    if isinstance(outcome, Refusal):
        reason, since, parameter, detail = outcome
        refused = Refused(reason, since=since, parameter=parameter, detail=detail)
    results = results_of(refused, is_on_behalf=is_on_behalf)
    return tuple((result.check, result.state) for result in results)


@cache
def right_explanation(failed: int | None, is_on_behalf: bool) -> Explanation:
    """By the place of the check that failed."""
    checks = [check for check, _ in CONTRACT]
    of_the_request = [check for check in Check if check not in checks]
    shown = [(check, CheckState.PASSED) for check in of_the_request]
    for place, check in enumerate(checks):
        if failed is not None and place >= failed:
            state = CheckState.FAILED if place == failed else CheckState.NOT_REACHED
        elif check in ONLY_ON_BEHALF and not is_on_behalf:
            state = CheckState.NOT_ASKED
        else:
            state = CheckState.PASSED
        shown.append((check, state))
    return tuple(shown)


def test_every_reason_and_every_kind_of_token_was_met() -> None:
    """Nothing above holds merely because the states leave something out."""
    met = Counter(
        outcome.reason if isinstance(outcome, Refusal) else "token"
        for represented in ((), REPRESENTED)
        for asked in ASKED_SCOPES
        for outcome in outcomes(represented, asked)
    )
    assert met.keys() == {*RegistryReason, "token"} - BINDING_REASONS
    for represented in ((), REPRESENTED):
        scopes = {o.scopes for o in outcomes(represented, None) if isinstance(o, Granted)}
        assert scopes == {frozenset("AB"), frozenset("A")}
