"""Which index in the status lists a new token gets (contract 2). Pure.

All tokens that one secret got for one taxpayer share an index, and the registry says what any of
them may do. The first of these tokens gets an index that its process has reserved, and the row
is stored with its login. A login needs a statement more only if there is none in reserve, or if its
token may do more than those before.
"""

import secrets
from collections import deque
from typing import NamedTuple

from taxpayers.facts.validity import next_end
from taxpayers.facts.values import Facts, StatusFacts
from taxpayers.rules import Authorization
from tokens.calls import TakenIndex, TakeStatusIndex, TokenRevocation

RESERVE = 256
_VERSION_BITS = 63


class ReservedIndexes:
    """Those of one process, of which `wanted` more are to be reserved when there is none left."""

    def __init__(self, wanted: int = RESERVE) -> None:
        self.wanted = wanted
        self._numbers: deque[int] = deque()

    def take(self) -> tuple[int, int] | None:
        """An index that is never given again, and a version for its row; None if none is left."""
        if not self._numbers:
            return None
        return self._numbers.popleft(), secrets.randbits(_VERSION_BITS)

    def add(self, taken: TakenIndex) -> None:
        """Those that came with another one."""
        self._numbers.extend(taken.reserved)


# For a login that must take its index from the database.
NONE_RESERVED = ReservedIndexes(wanted=0)


class NoStatusIndex(Exception):
    """There is no index for this token yet: `call` is what must be done first."""

    def __init__(self, call: TakeStatusIndex | TokenRevocation) -> None:
        super().__init__(call)
        self.call = call


class TokenIndex(NamedTuple):
    """The index of a token; `new` is what must be stored of it with the login, if it is new."""

    status: StatusFacts
    new: TakeStatusIndex | None = None


def token_index(
    facts: Facts, authorization: Authorization, reserved: ReservedIndexes
) -> TokenIndex:
    """The index of the token for this authorization. Raises NoStatusIndex."""
    status = facts.status
    scopes, permissions = authorization.scopes, authorization.permissions
    if status is None:
        new, free = _take(facts, authorization), reserved.take()
        if free is None:
            raise NoStatusIndex(new._replace(reserve=reserved.wanted))
        return TokenIndex(StatusFacts(*free, tuple(sorted(scopes)), permissions), new)
    if status.scopes == scopes and status.permissions == permissions:
        return TokenIndex(status)
    # What older tokens may do and this client may no longer: their bit is about to be set.
    if not (
        set(status.scopes) <= set(facts.client.scopes)
        and set(status.permissions) <= set(permissions)
    ):
        raise NoStatusIndex(TokenRevocation(None, None, status.index))
    if set(scopes) <= set(status.scopes) and set(permissions) <= set(status.permissions):
        return TokenIndex(status)
    raise NoStatusIndex(_take(facts, authorization))


def _take(facts: Facts, authorization: Authorization) -> TakeStatusIndex:
    subject, actor = authorization.subject, authorization.actor
    return TakeStatusIndex(
        facts.client.id,
        facts.credential.id,
        subject.tin,
        subject.rob,
        str(actor) if actor else "",
        authorization.scopes,
        authorization.permissions,
        facts.epoch,
        next_end(facts, authorization.at),
    )
