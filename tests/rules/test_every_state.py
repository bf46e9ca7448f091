"""The decision about a login and what stands around it, for every state (contract 1 and 4)."""

from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations_with_replacement, islice
from math import prod
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace
from pytest_django import Settings

from taxpayers.credentials import new_client_secret
from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.token_binding import UNBOUND, Confirmation, TokenBinding
from taxpayers.facts.values import Facts, Reading, StatusFacts
from taxpayers.rules import AuthorizationRequest, Refused, RegistryReason, decide
from taxpayers.standing.standing import standing_of
from tests.facts.test_steps import NO_PAUSE, Memory, drive, names
from tests.rules.states import (
    ALLOWED_NETWORKS,
    ALLOWED_PERMISSIONS,
    ASKED_SCOPES,
    AT,
    BLOCKED_AT,
    CLIENT,
    CLIENT_ID,
    EXPIRES_AT,
    HAS_ALLOWED_TAXPAYERS,
    HELD_SCOPES,
    IN_ORDER,
    KNOWN_SCOPES,
    LIMITED_CLIENT,
    LIMITED_REPRESENTED,
    LIMITED_SECRET,
    LIMITS,
    ONLY_ON_BEHALF,
    OTHER,
    REPRESENTED,
    ROLE,
    SECRET,
    SOURCE,
    TAXPAYER_IS_ACTIVE,
    Asked,
    Dimensions,
    Granted,
    Outcome,
    Refusal,
    State,
    ago,
    allows,
    clients,
    decided,
    expected,
    facts_of,
    outcome_of,
    secrets,
    states,
)
from tests.support.erp import FORM
from tokens.calls import TakenIndex
from tokens.explanation import CheckState, results_of
from tokens.keys import signer
from tokens.keys.ring import Key, KeyRing, generate
from tokens.operations.clock import LocalClock
from tokens.operations.login import EndedLogin, log_in
from tokens.operations.node import Node
from tokens.rate_limits.quota import Quota
from tokens.refusals.table import Check
from tokens.request.arrival import receive

Space = tuple[Dimensions, Dimensions, Dimensions]
SPACES: dict[str, Space] = {
    "as taxpayer": (SECRET, CLIENT, ()),
    "on behalf of another": (SECRET, CLIENT, REPRESENTED),
    "limited, as taxpayer": (LIMITED_SECRET, LIMITED_CLIENT, ()),
    "limited, on behalf of another": (LIMITED_SECRET, LIMITED_CLIENT, LIMITED_REPRESENTED),
}
each_login = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
each_asked = pytest.mark.parametrize(
    "asked", ASKED_SCOPES, ids=["no scope", "known scopes", "an unknown scope"]
)

BINDING_REASONS = {"dpop_proof_missing", "certificate_missing"}
# The table of the contract from the secret on, by the checks that staff see.
CONTRACT = [
    (Check.SECRET_EXPIRY, {"secret_expired"}),
    (Check.SECRET_REVOCATION, {"secret_revoked"}),
    (Check.SOURCE_NETWORK, {"source_network_not_allowed"}),
    (Check.RATE_LIMIT, {"rate_limited"}),  # below
    (Check.TOKEN_BINDING, BINDING_REASONS),  # below
    (Check.BLOCK, {"system_user_blocked"}),
    (Check.SYSTEM_USER_EXPIRY, {"system_user_expired"}),
    (Check.TAXPAYER, {"taxpayer_inactive"}),
    (Check.INTERMEDIARY, {"not_an_intermediary"}),
    (Check.INTERMEDIARY_ACTIVE, {"intermediary_inactive"}),
    (Check.LIMIT, {"own_taxpayer_not_allowed", "taxpayer_not_allowed"}),
    (Check.PERMISSION, {"no_permission"}),
    (
        Check.PERMISSION_IN_FORCE,
        {"permission_not_yet_valid", "permission_expired", "permission_revoked"},
    ),
    (Check.PERMISSIONS_LIMIT, {"permissions_not_allowed"}),
    (Check.SCOPE, {"invalid_scope"}),
]
CHECKS_ON_BEHALF = {
    *(Check.INTERMEDIARY, Check.INTERMEDIARY_ACTIVE),
    *(Check.PERMISSION, Check.PERMISSION_IN_FORCE, Check.PERMISSIONS_LIMIT),
}
OF_SECRETS = {"secret_expired", "secret_revoked", "source_network_not_allowed"}
PLACE = {reason: place for place, (_, reasons) in enumerate(CONTRACT) for reason in reasons}


@cache
def all_states(space: Space) -> list[State]:
    return list(states(*space))


@cache
def outcomes(space: Space, asked: Asked) -> list[Outcome]:
    """What the service decides in each state, in their order."""
    found: dict[Outcome, Outcome] = {}  # each once: there are many states
    decisions = (decided(state, asked) for state in all_states(space))
    return [found.setdefault(outcome, outcome) for outcome in decisions]


@each_asked
@each_login
def test_every_state_has_the_outcome_of_the_contract(space: Space, asked: Asked) -> None:
    """The reason is the first one in the contract's order, with its own date; or it is a token."""
    for state, found in zip(all_states(space), outcomes(space, asked), strict=True):
        assert found == expected(state, asked), state


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED_SCOPES[:2], ids=["no scope", "known scopes"])
@each_login
def test_a_restriction_never_grants_more(space: Space, asked: Asked) -> None:
    """Whatever the other facts are: no token instead of a refusal, no further scope or code.

    One step on each fact is enough: what grants no more than the state before it, grants no more
    than any before that.
    """
    dimensions = [values for part in space for values in part]
    by_id = {id(outcome): outcome for outcome in outcomes(space, asked)}
    found = [id(outcome) for outcome in outcomes(space, asked)]
    steps: set[tuple[int, int]] = set()  # from an outcome to the next one: there are few
    for place, values in enumerate(dimensions):
        distance = prod(len(others) for others in dimensions[place + 1 :])
        size = distance * len(values)
        for block in range(0, len(found), size):
            whole = found[block : block + size]
            steps.update(zip(whole, whole[distance:], strict=False))
    for before, after in ((by_id[one], by_id[other]) for one, other in steps):
        assert allows(after) <= allows(before), (before, after)


@each_asked
@each_login
def test_the_explanation_agrees_with_every_decision(space: Space, asked: Asked) -> None:
    """Passed up to the reason, which failed; what comes after it was not reached."""
    is_on_behalf = bool(space[2])
    for outcome in set(outcomes(space, asked)):
        failed = PLACE[outcome.reason] if isinstance(outcome, Refusal) else None
        assert explained(outcome, is_on_behalf) == right_explanation(failed, is_on_behalf), outcome


Explanation = tuple[tuple[Check, CheckState], ...]


def explained(outcome: Outcome, is_on_behalf: bool) -> Explanation:
    refused = None
    if isinstance(outcome, Refusal):
        reason, since, parameter, detail = outcome
        refused = Refused(reason, since=since, parameter=parameter, detail=detail)
    results = results_of(refused, is_on_behalf=is_on_behalf)
    return tuple((result.check, result.state) for result in results)


def right_explanation(failed: int | None, is_on_behalf: bool) -> Explanation:
    """By the place of the check that failed."""
    checks = [check for check, _ in CONTRACT]
    of_the_request = [check for check in Check if check not in checks]
    shown = [(check, CheckState.PASSED) for check in of_the_request]
    for place, check in enumerate(checks):
        if failed is not None and place >= failed:
            state = CheckState.FAILED if place == failed else CheckState.NOT_REACHED
        elif check in CHECKS_ON_BEHALF and not is_on_behalf:
            state = CheckState.NOT_ASKED
        else:
            state = CheckState.PASSED
        shown.append((check, state))
    return tuple(shown)


def test_every_reason_and_every_kind_of_token_was_met() -> None:
    """Nothing above holds merely because the states leave something out."""
    met = Counter(
        outcome.reason if isinstance(outcome, Refusal) else "token"
        for space in SPACES.values()
        for asked in ASKED_SCOPES
        for outcome in outcomes(space, asked)
    )
    assert met.keys() == {*RegistryReason, "token"} - BINDING_REASONS
    for space in list(SPACES.values())[:2]:
        scopes = {o.scopes for o in outcomes(space, None) if isinstance(o, Granted)}
        assert scopes == {frozenset("AB"), frozenset("A")}


def test_a_login_from_elsewhere_is_refused_and_a_token_is_not_ended() -> None:
    """Networks are for logins: without a login, none is checked."""
    secret = replace(IN_ORDER.secret.facts, allowed_networks=ALLOWED_NETWORKS[-1].fact)
    facts = Facts(IN_ORDER.client.facts, secret)
    request = AuthorizationRequest(facts, None, KNOWN_SCOPES, AT)
    assert isinstance(outcome_of(request), Granted)
    refused = partial(Refusal, "source_network_not_allowed")
    for address in ("192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7", "not an address"):
        assert outcome_of(replace(request, source=LoginSource(address))) == refused(detail=address)
    assert outcome_of(replace(request, source=LoginSource(None))) == refused()
    for address in ("192.0.2.8", "192.0.2.15", "::ffff:192.0.2.9"):
        assert isinstance(outcome_of(replace(request, source=LoginSource(address))), Granted)


CLIENT_SECRET = new_client_secret("test")
RIGHT = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
KEY = Key("a-kid", "ES256", ago(1), {}, generate("ES256"))
LIMIT = 12


@pytest.fixture
def _service(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.SCOPES = {name: {"description": "", "audience": name} for name in KNOWN_SCOPES}
    monkeypatch.setattr(signer._cache, "_ring", KeyRing((KEY,)))
    monkeypatch.setattr(signer._cache, "_read_at", AT)


def right_or_wrong() -> Iterator[State]:
    """Each fact as generous and as strict as it can be; of the permissions one is in force."""
    secret, client, represented = (
        [(values[0], values[-1]) for values in dimensions]
        for dimensions in (SECRET, CLIENT, REPRESENTED)
    )
    yield from states(secret, client)
    not_granted = [values[-1:] for values in represented[2:]]
    yield from states(secret, client, [*represented[:2], *not_granted])
    # With limits, where nothing else is wrong.
    limited = [
        [
            values if any(values is limit for limit in LIMITS) else values[:1]
            for values in dimensions
        ]
        for dimensions in (LIMITED_SECRET, LIMITED_CLIENT, LIMITED_REPRESENTED)
    ]
    yield from states(*limited[:2])
    yield from states(*limited)


def log_in_with(state: State, used: int, results: list[Any]) -> tuple[str, EndedLogin]:
    """The calls after the registry was read, which get these results, and the end."""
    meta = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": "192.0.2.1"}
    if state.is_on_behalf:
        meta["HTTP_ONBEHALFOF"] = str(OTHER)
    arrival, raw = receive(meta, urlencode(RIGHT).encode(), AT)
    steps = log_in(Node(Memory(None), LocalClock()), arrival, raw)
    calls, ended = drive(steps, [Reading(AT, facts_of(state), (AT, used)), *results])
    return names(calls[1:]), ended


@pytest.mark.usefixtures("_service")
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 11])
def test_the_limit_is_checked_after_the_secret_and_before_everything_else(every: int) -> None:
    for state in islice(right_or_wrong(), 0, None, every):
        right = expected(state, None)
        reason = "issued" if isinstance(right, Granted) else right.reason
        if reason in OF_SECRETS:
            # No client was authenticated: it counts as a failure, not against the client's limit.
            for used in (0, LIMIT):
                calls, ended = log_in_with(state, used, [NO_PAUSE])
                assert (calls, ended.outcome) == ("FailedLogin", reason)
            continue
        before, results = "", list[Any]([Quota(LIMIT, 1, AT)])
        if isinstance(right, Granted):  # the first token takes an index in the status lists
            before = "TakeStatusIndex "
            results.insert(
                0, TakenIndex(StatusFacts(1, 1, tuple(right.scopes), tuple(right.codes)))
            )
        calls, ended = log_in_with(state, 0, results)
        assert (calls, ended.outcome) == (f"{before}CountedLogin", reason)
        calls, ended = log_in_with(state, LIMIT, [])
        assert (calls, ended.outcome) == ("", "rate_limited"), state


LIVE_OR_NOT = [replace(one.facts, id=number) for number, one in enumerate(secrets(SECRET), start=1)]
PAIRS = [(), *((one,) for one in LIVE_OR_NOT), *combinations_with_replacement(LIVE_OR_NOT, 2)]
STANDING = (
    *(BLOCKED_AT, EXPIRES_AT, TAXPAYER_IS_ACTIVE, ROLE[:1], HELD_SCOPES),
    *(ALLOWED_PERMISSIONS[:1], HAS_ALLOWED_TAXPAYERS[:1], ONLY_ON_BEHALF[:1]),
)
CLIENTS = [one.facts for one in clients(STANDING)]


def refusal_of(facts: Facts) -> Refused | None:
    try:
        decide(AuthorizationRequest(facts, None, KNOWN_SCOPES, AT))
    except Refused as refused:
        return refused
    return None


def test_it_gets_a_token_exactly_if_a_login_with_one_of_its_secrets_would() -> None:
    for client in CLIENTS:
        decided = {secret.id: refusal_of(Facts(client, secret)) for secret in LIVE_OR_NOT}
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
        for pair in ((), LIVE_OR_NOT):
            before, after = (
                standing_of(one, pair, KNOWN_SCOPES, AT)
                for one in (client, replace(client, **changes))
            )
            assert after.gets_token == before.gets_token
            assert after.valid_credentials == before.valid_credentials
            assert [r.reason for r in after.refusals] == [r.reason for r in before.refusals]


def test_the_valid_secrets_are_those_that_the_rules_pass_whatever_else_is_wrong() -> None:
    passing = {secret.id for secret in LIVE_OR_NOT if refusal_of(Facts(CLIENTS[0], secret)) is None}
    assert 0 < len(passing) < len(LIVE_OR_NOT)
    for client in CLIENTS:
        found = standing_of(client, LIVE_OR_NOT, KNOWN_SCOPES, AT).valid_credentials
        assert {secret.id for secret in found} == passing
        assert list(found) == sorted(found, key=lambda secret: secret.expires_at, reverse=True)


def test_the_first_refusal_is_the_one_that_a_login_with_a_valid_secret_gets() -> None:
    valid = next(s for s in LIVE_OR_NOT if refusal_of(Facts(CLIENTS[0], s)) is None)
    for client in CLIENTS:
        refused = refusal_of(Facts(client, valid))
        for pair in ((valid,), ()):  # the same whether it has a secret or not
            refusals = standing_of(client, pair, KNOWN_SCOPES, AT).refusals
            first = refusals[0] if refusals else None
            assert (first and (first.reason, first.since)) == (
                refused and (refused.reason, refused.since)
            )


BY_KEY, CERTIFICATE = (
    Confirmation(b, "a-thumbprint") for b in (TokenBinding.DPOP, TokenBinding.TLS)
)
NO_PROOF, NO_CERTIFICATE = Refusal("dpop_proof_missing"), Refusal("certificate_missing")
# What the tokens of the client must be bound to, what it has proved, and the refusal.
BINDINGS: dict[tuple[str, Confirmation], Refusal | None] = {
    ("", UNBOUND): None,
    ("", BY_KEY): None,
    ("", CERTIFICATE): None,
    ("dpop", UNBOUND): NO_PROOF,
    ("dpop", BY_KEY): None,
    ("dpop", CERTIFICATE): NO_PROOF,
    ("tls", UNBOUND): NO_CERTIFICATE,
    ("tls", BY_KEY): NO_CERTIFICATE,
    ("tls", CERTIFICATE): None,
    # An unknown one, written by SQL, is proved by nothing.
    ("other", UNBOUND): NO_PROOF,
    ("other", BY_KEY): NO_PROOF,
    ("other", CERTIFICATE): NO_PROOF,
}


def with_binding(state: State, binding: str, proved: Confirmation) -> AuthorizationRequest:
    facts = facts_of(state)
    bound = replace(facts, client=replace(facts.client, token_binding=binding))
    return AuthorizationRequest(bound, None, KNOWN_SCOPES, AT, proved, source=SOURCE)


@pytest.mark.parametrize(("binding", "proved"), BINDINGS)
def test_in_every_state_a_token_is_bound_as_it_must_be(binding: str, proved: Confirmation) -> None:
    """The rule is checked after those of the secret and before all others.

    What a client proves beyond what it must changes nothing but its token.
    """
    refusal = BINDINGS[binding, proved]
    for state in right_or_wrong():
        unbound, found = decided(state, None), outcome_of(with_binding(state, binding, proved))
        if refusal is None or (isinstance(unbound, Refusal) and unbound.reason in OF_SECRETS):
            assert found == unbound, state
        else:
            assert found == refusal, state
    if refusal is None:
        assert decide(with_binding(IN_ORDER, binding, proved)).confirmation == proved
