"""Which index in the status lists a new token gets (contract 2). Pure.

An index stands for all tokens that one secret got for one taxpayer, and the registry says what any
of them may do. So a login needs a statement more only if its token is the first one of the index,
or may do more than those before.
"""

from taxpayers.facts.values import Facts
from taxpayers.rules import Authorization, next_end
from tokens.login_events.events import TakeStatusIndex, TokenRevocation


class NoStatusIndex(Exception):
    """There is no index for this token yet: `call` is what must be done first."""

    def __init__(self, call: TakeStatusIndex | TokenRevocation) -> None:
        super().__init__(call)
        self.call = call


def status_index(facts: Facts, authorization: Authorization) -> int:
    """The index of the token for this authorization. Raises NoStatusIndex."""
    status = facts.status
    scopes, permissions = authorization.scopes, authorization.permissions
    if status is None:
        raise NoStatusIndex(_take(facts, authorization))
    if status.scopes == scopes and status.permissions == permissions:
        return status.index
    # What older tokens may do and this client may no longer: their bit is about to be set.
    if not (
        set(status.scopes) <= set(facts.client.scopes)
        and set(status.permissions) <= set(permissions)
    ):
        raise NoStatusIndex(TokenRevocation(None, None, status.index))
    if set(scopes) <= set(status.scopes) and set(permissions) <= set(status.permissions):
        return status.index
    raise NoStatusIndex(_take(facts, authorization))


def _take(facts: Facts, authorization: Authorization) -> TakeStatusIndex:
    subject, actor = authorization.subject, authorization.actor
    return TakeStatusIndex(
        facts.client.id,
        facts.secret.id,
        subject.tin,
        subject.rob,
        str(actor) if actor else "",
        authorization.scopes,
        authorization.permissions,
        facts.epoch,
        next_end(facts, authorization.at),
    )
