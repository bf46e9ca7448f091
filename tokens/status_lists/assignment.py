"""Which index in the status lists a new token gets (contract 2). Pure.

All tokens that one secret got for one taxpayer share an index, and the registry says what any of
them may do. The first of these tokens gets an index that its process has reserved, and the row
is stored with its login. A login needs a statement more only if there is none in reserve, or if its
token may do more than those before.
"""

from typing import NamedTuple

from taxpayers.facts.validity import next_end
from taxpayers.facts.values import Facts, StatusFacts
from taxpayers.rules import Authorization
from tokens.calls import TakeStatusIndex, TokenRevocation
from tokens.status_lists.reserved import ReservedIndexes


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
