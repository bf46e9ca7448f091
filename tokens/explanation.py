"""Why a login ended as it did: every check in order, and what to do next (contract 6).

Read from the login event alone, so it tells the facts of that moment, not of today.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from taxpayers.rules import Reason, Refusal
from tokens.errors import describe, said
from tokens.models import LoginEvent


class State(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_REACHED = "not reached"
    NOT_ASKED = "not asked"  # only asked of a login on behalf of another taxpayer


@dataclass(frozen=True, slots=True)
class Step:
    """One check: what it asks, how it ended, and the reasons that it can refuse with."""

    question: str
    state: State
    reasons: tuple[Reason, ...]
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All steps in the contract's order, and the outcome in one sentence."""

    outcome: str
    steps: tuple[Step, ...]


# The contract's order, as the login asks it.
_QUESTIONS: tuple[tuple[str, tuple[Reason, ...]], ...] = (
    ("Was it sent with POST?", (Reason.METHOD_NOT_ALLOWED,)),
    ("Did it come by HTTPS?", (Reason.INSECURE_TRANSPORT,)),
    ("Is the request well-formed?", (Reason.MALFORMED_REQUEST,)),
    ("Are all parameters there?", (Reason.MISSING_PARAMETER,)),
    ("Is the grant type client_credentials?", (Reason.UNSUPPORTED_GRANT_TYPE,)),
    ("Is the header onbehalfof well-formed?", (Reason.MALFORMED_ON_BEHALF_OF,)),
    ("Do id and secret have the right form?", (Reason.MALFORMED_CREDENTIALS,)),
    ("Do id and secret belong together?", (Reason.INVALID_CREDENTIALS,)),
    ("Is the secret within its lifetime?", (Reason.SECRET_EXPIRED,)),
    ("Is the secret not revoked?", (Reason.SECRET_REVOKED,)),
    ("Is the limit of logins kept?", (Reason.RATE_LIMITED,)),
    ("Is the system user not blocked?", (Reason.SYSTEM_USER_BLOCKED,)),
    ("Is the system user within its lifetime?", (Reason.SYSTEM_USER_EXPIRED,)),
    ("Is its taxpayer active?", (Reason.TAXPAYER_INACTIVE,)),
    ("Is its taxpayer an intermediary?", (Reason.NOT_AN_INTERMEDIARY,)),
    ("Is the intermediary active?", (Reason.INTERMEDIARY_INACTIVE,)),
    ("Did the taxpayer grant a permission?", (Reason.NO_PERMISSION,)),
    (
        "Is a permission in force?",
        (Reason.PERMISSION_NOT_YET_VALID, Reason.PERMISSION_EXPIRED, Reason.PERMISSION_REVOKED),
    ),
    ("May the client have the scope?", (Reason.INVALID_SCOPE,)),
)
_ON_BEHALF_ONLY = frozenset(
    {
        Reason.NOT_AN_INTERMEDIARY,
        Reason.INTERMEDIARY_INACTIVE,
        Reason.NO_PERMISSION,
        Reason.PERMISSION_NOT_YET_VALID,
    }
)


def refusal_of(event: LoginEvent) -> Refusal | None:
    """The refusal that the event keeps; None if a token was issued."""
    if event.is_issued:
        return None
    reason = Reason(event.reason)
    try:
        return Refusal(reason, since=datetime.fromisoformat(event.detail))
    except ValueError:
        return Refusal(reason, detail=event.detail)


def explain(event: LoginEvent) -> Explanation:
    """Every check of this login, passed, failed or not reached, with the advice for the failed."""
    refusal = refusal_of(event)
    steps = []
    state = State.PASSED
    for question, reasons in _QUESTIONS:
        failed = refusal is not None and refusal.reason in reasons
        if failed:
            assert refusal is not None  # noqa: S101 - for the type checker
            steps.append(Step(question, State.FAILED, reasons, describe(refusal)))
            state = State.NOT_REACHED
        elif state is State.PASSED and reasons[0] in _ON_BEHALF_ONLY and not event.is_on_behalf:
            steps.append(Step(question, State.NOT_ASKED, reasons))
        else:
            steps.append(Step(question, state, reasons))
    return Explanation(_outcome(event, refusal), tuple(steps))


def _outcome(event: LoginEvent, refusal: Refusal | None) -> str:
    when = said(event.at)
    if refusal is None:
        acting = f", {event.actor} acting for it" if event.actor else ""
        return f"On {when} a token was issued for {event.subject}{acting}, scope {event.scope}."
    return f"On {when} the login was refused: {describe(refusal)}"
