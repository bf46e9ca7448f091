"""The values that the steps of a login hand on, each frozen. Pure."""

from datetime import timedelta
from typing import NamedTuple

from msgspec.structs import replace

from taxpayers.facts.values import FactsQuery, Reading, StatusFacts
from taxpayers.rules import Refused
from taxpayers.value import Hidden, Value
from tokens.access_tokens.issuing import SignedToken
from tokens.calls import TakeStatusIndex, TokenRevocation, Write
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.lifetime import TOKEN_LIFETIME
from tokens.operations.node import Node
from tokens.rate_limits.quota import Quota
from tokens.request.arrival import Arrival
from tokens.request.token_request import TokenRequest
from tokens.status_lists.assignment import ReservedIndexes, TokenIndex


class Terms(NamedTuple):
    """The terms of a login: for a client of the sandbox they differ.

    Without `pauses` a failure counts as a login, and no denial is remembered.
    """

    lifetime: timedelta = TOKEN_LIFETIME  # of the token
    pauses: bool = True


TERMS = Terms()


class Login(NamedTuple):
    """One login whose request could be read."""

    node: Node
    arrival: Arrival
    asked: TokenRequest
    query: FactsQuery
    terms: Terms


# A client that has changed so often before its login was recorded is locked: nothing changes then.
CHANGES_WITHOUT_LOCK = 3


class Start(NamedTuple):
    """What a login is decided from; without a `reading` the registry is read."""

    reading: Reading | None
    reserved: ReservedIndexes
    is_proof_used: bool = False
    rounds: int = 0  # how often it has started again
    changes: int = 0  # how often because its client had changed

    @property
    def is_locked(self) -> bool:
        """Whether the client is locked from the reading of the registry to the next call."""
        return self.changes == CHANGES_WITHOUT_LOCK


class IssuedLogin(Value):
    """Who gets which token, its index, and the body of the answer that carries it."""

    client: AuthenticatedClient
    token: SignedToken
    index: TokenIndex
    body: Hidden[str]


class Decision(NamedTuple):
    """By which facts, who has proved to be the client, what it gets, and the call to record that.

    No outcome: the token has no index in the status lists yet, and the call is to take or end one.
    """

    reading: Reading
    client: AuthenticatedClient | None
    outcome: IssuedLogin | Refused | None
    call: Write | TakeStatusIndex | TokenRevocation | None


class Recorded(NamedTuple):
    """A decision that is stored, or that leaves no record: now it can be answered."""

    decision: Decision
    quota: Quota | None


def with_status(reading: Reading, status: StatusFacts) -> Reading:
    """The same, where the tokens of this client have this index."""
    assert reading.facts is not None  # noqa: S101 - without facts there is no decision
    return replace(reading, facts=replace(reading.facts, status=status))
