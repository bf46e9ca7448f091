"""What stands around the decision: where the limit comes, what counts as failure (contract 1).

The steps of a login, without a database, for every combination of facts that are right or wrong.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import pytest
from pytest_django import Settings

from taxpayers.credentials import hash_secret, new_client_secret
from taxpayers.facts.values import Facts, FactsQuery, Reading, StatusFacts
from tests.facts.login_cases import NO_PAUSE, drive, names
from tests.rules.states import (
    AT,
    CLIENT,
    CLIENT_ID,
    KNOWN_SCOPES,
    LIMITED_CLIENT,
    LIMITED_REPRESENTED,
    LIMITED_SECRET,
    LIMITS,
    OTHER,
    REPRESENTED,
    SECRET,
    Granted,
    State,
    ago,
    expected,
    facts_of,
    states,
)
from tests.support.erp import FORM
from tokens.calls import TakenIndex
from tokens.keys import signer
from tokens.keys.ring import Key, KeyRing, generate
from tokens.operations.clock import LocalClock
from tokens.operations.login import EndedLogin, log_in
from tokens.operations.node import Node
from tokens.rate_limits.quota import Quota
from tokens.request.arrival import receive

CLIENT_SECRET = new_client_secret("test")
RIGHT = {"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
KEY = Key("a-kid", "ES256", ago(1), {}, generate("ES256"))
LIMIT = 12


@pytest.fixture(autouse=True)
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


class KnownClient:
    """What the registry answers: these facts, to the right id with the right secret."""

    def __init__(self, facts: Facts, used: int) -> None:
        self.facts, self.used = facts, used

    def read(self, query: FactsQuery) -> Reading:
        if (query.client_id, query.lookup) != (CLIENT_ID, hash_secret(CLIENT_SECRET)):
            return Reading(AT, None)
        return Reading(AT, self.facts, (AT, self.used))


class NothingKnown:
    def find(self, query: FactsQuery) -> None:
        return None

    def store(self, query: FactsQuery, facts: Facts) -> None:
        pass


def log_in_with(state: State, used: int, results: list[Any]) -> tuple[str, EndedLogin]:
    """The calls after the registry was read, which get these results, and the end."""
    meta = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM, "REMOTE_ADDR": "192.0.2.1"}
    if state.is_on_behalf:
        meta["HTTP_ONBEHALFOF"] = str(OTHER)
    query = FactsQuery(CLIENT_ID, hash_secret(CLIENT_SECRET), OTHER if state.is_on_behalf else None)
    registry = KnownClient(facts_of(state), used)
    arrival, raw = receive(meta, urlencode(RIGHT).encode(), AT)
    steps = log_in(Node(NothingKnown(), LocalClock()), arrival, raw)
    calls, ended = drive(steps, [registry.read(query), *results])
    return names(calls[1:]), ended


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 11])
def test_the_limit_is_checked_after_the_secret_and_before_everything_else(every: int) -> None:
    for state in islice(right_or_wrong(), 0, None, every):
        right = expected(state, None)
        reason = "issued" if isinstance(right, Granted) else right.reason
        if reason in ("secret_expired", "secret_revoked", "source_network_not_allowed"):
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
