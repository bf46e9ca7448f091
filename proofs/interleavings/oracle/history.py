"""What each login may be answered: the decision for each state that was in force meanwhile."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from proofs.interleavings.logins.login import ASSERTION_LIFETIME, Login
from proofs.interleavings.oracle.registry import Registry
from taxpayers.facts.source_networks import LoginSource
from taxpayers.facts.values import ASSERTION, Facts
from taxpayers.rules import AuthorizationRequest, Refused, decide
from tokens.client_auth.assertion import AssertionFault
from tokens.client_auth.private_key_jwt import MAX_AHEAD, SKEW
from tokens.refusals.table import ProtocolReason


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a login ends: everything that a change of the registry could alter."""

    reason: str
    since: datetime | None
    parameter: str
    detail: str
    system_user_id: int | None
    secret_id: int | None
    subject: str
    actor: str
    scope: str
    permissions: tuple[str, ...] | None


class History:
    """The states of the registry, each with the step in which it was committed."""

    def __init__(self, first: Registry) -> None:
        self._states: deque[tuple[int, Registry]] = deque([(0, first)])

    @property
    def present(self) -> Registry:
        return self._states[-1][1]

    @property
    def changed_in(self) -> int:
        """The step of the latest change."""
        return self._states[-1][0]

    def add(self, step: int, state: Registry) -> None:
        self._states.append((step, state))

    def in_force_since(self, step: int) -> Iterator[tuple[int, Registry]]:
        """The state at that step, and those that came later."""
        ends = [since for since, _ in self._states][1:]
        for (since, state), until in zip(self._states, [*ends, step + 1], strict=True):
            if until > step:
                yield since, state

    def forget_before(self, step: int) -> None:
        """No login asks for an earlier step."""
        while len(self._states) > 1 and self._states[1][0] <= step:
            self._states.popleft()


def expected(login: Login, facts: Facts | None, at: datetime) -> Outcome:
    """How the login ends if it is decided from these facts at this moment."""
    asked = login.asked
    subject = str(asked.on_behalf_of or "")
    unknown = (None, None, subject, "", "", None)
    parameter = "" if isinstance(asked.credential, str) else ASSERTION
    # Signed by the time of its node. That is ahead of the database's after a first answer that was
    # minutes under way, and behind it after a login that waited for minutes.
    expires = login.arrival.at + ASSERTION_LIFETIME
    is_too_late, is_too_early = expires + SKEW < at, expires - SKEW > at + MAX_AHEAD
    if parameter and (is_too_late or is_too_early):
        fault = AssertionFault.EXPIRED if is_too_late else AssertionFault.TOO_FAR_AHEAD
        return Outcome(ProtocolReason.MALFORMED_CREDENTIALS, None, parameter, fault, *unknown)
    if facts is None:
        return Outcome(ProtocolReason.INVALID_CREDENTIALS, None, parameter, "", *unknown)
    own = str(facts.client.taxpayer)
    ids = (facts.client.id, facts.credential.id)
    whose = (subject or own, own if subject else "")
    known, source = tuple(settings.SCOPES), LoginSource(asked.address)
    try:
        granted = decide(AuthorizationRequest(facts, asked.scopes, known, at, source=source))
    except Refused as no:
        return Outcome(no.reason, no.since, no.parameter, no.detail, *ids, *whose, "", None)
    permissions = granted.permissions if subject else None
    return Outcome("", None, "", "", *ids, *whose, " ".join(granted.scopes), permissions)
