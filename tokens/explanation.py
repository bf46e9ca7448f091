"""Why a login ended as it did: every check in order, and what to do next (contract 6).

Read from the login event alone, so it tells the facts of that moment, not of today.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils.translation import gettext_noop as _

from taxpayers.rules import Reason, Refusal
from tokens.models import LoginEvent
from tokens.refusals import ERRORS, describe, format_moment


class CheckState(StrEnum):
    PASSED = _("passed")
    FAILED = _("failed")
    NOT_REACHED = _("not reached")
    NOT_ASKED = _("not asked")  # only asked of a login on behalf of another taxpayer


@dataclass(frozen=True, slots=True)
class Step:
    """One check: what it asks, how it ended, and the reasons that it can refuse with."""

    question: str
    state: CheckState
    reasons: tuple[Reason, ...]
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All steps in the contract's order, and the outcome in one sentence."""

    outcome: str
    steps: tuple[Step, ...]


# The contract's order, as the login asks it. Marked for the staff's pages, which translate them.
_QUESTIONS: tuple[tuple[str, tuple[Reason, ...]], ...] = (
    (_("Was it sent with POST?"), (Reason.METHOD_NOT_ALLOWED,)),
    (_("Did it come by HTTPS?"), (Reason.INSECURE_TRANSPORT,)),
    (_("Is the request well-formed?"), (Reason.MALFORMED_REQUEST,)),
    (_("Are all parameters there?"), (Reason.MISSING_PARAMETER,)),
    (_("Is the grant type client_credentials?"), (Reason.UNSUPPORTED_GRANT_TYPE,)),
    (_("Is the header onbehalfof well-formed?"), (Reason.MALFORMED_ON_BEHALF_OF,)),
    (_("Do id and secret have the right form?"), (Reason.MALFORMED_CREDENTIALS,)),
    (_("Do id and secret belong together?"), (Reason.INVALID_CREDENTIALS,)),
    (_("Is the secret within its lifetime?"), (Reason.SECRET_EXPIRED,)),
    (_("Is the secret not revoked?"), (Reason.SECRET_REVOKED,)),
    (_("Is the limit of logins kept?"), (Reason.RATE_LIMITED,)),
    (_("Is the system user not blocked?"), (Reason.SYSTEM_USER_BLOCKED,)),
    (_("Is the system user within its lifetime?"), (Reason.SYSTEM_USER_EXPIRED,)),
    (_("Is its taxpayer active?"), (Reason.TAXPAYER_INACTIVE,)),
    (_("Is its taxpayer an intermediary?"), (Reason.NOT_AN_INTERMEDIARY,)),
    (_("Is the intermediary active?"), (Reason.INTERMEDIARY_INACTIVE,)),
    (_("Did the taxpayer grant a permission?"), (Reason.NO_PERMISSION,)),
    (
        _("Is a permission in force?"),
        (Reason.PERMISSION_NOT_YET_VALID, Reason.PERMISSION_EXPIRED, Reason.PERMISSION_REVOKED),
    ),
    (_("May the client have the scope?"), (Reason.INVALID_SCOPE,)),
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
    # The client wrote the detail of other reasons, and may have written a date.
    since = _moment(event.detail) if "{since" in ERRORS[reason].text else None
    return Refusal(reason, detail="" if since else event.detail, since=since)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def explain(event: LoginEvent) -> Explanation:
    """Every check of this login, passed, failed or not reached, with the advice for the failed."""
    refusal = refusal_of(event)
    steps = steps_of(refusal, is_on_behalf=event.is_on_behalf)
    return Explanation(_outcome(event, refusal), steps)


def steps_of(refusal: Refusal | None, *, is_on_behalf: bool) -> tuple[Step, ...]:
    """Every check of a login that ended so (None: with a token), in the contract's order."""
    steps = []
    is_planned = refusal is None or any(refusal.reason in reasons for _q, reasons in _QUESTIONS)
    # Where the service itself failed, nobody knows how far it came.
    state = CheckState.PASSED if is_planned else CheckState.NOT_REACHED
    for question, reasons in _QUESTIONS:
        failed = refusal is not None and refusal.reason in reasons
        if failed:
            assert refusal is not None  # noqa: S101 - for the type checker
            steps.append(Step(question, CheckState.FAILED, reasons, describe(refusal)))
            state = CheckState.NOT_REACHED
        elif state is CheckState.PASSED and reasons[0] in _ON_BEHALF_ONLY and not is_on_behalf:
            steps.append(Step(question, CheckState.NOT_ASKED, reasons))
        else:
            steps.append(Step(question, state, reasons))
    return tuple(steps)


def _outcome(event: LoginEvent, refusal: Refusal | None) -> str:
    when = format_moment(event.at)
    if refusal is None:
        acting = f", {event.actor} acting for it" if event.actor else ""
        return f"On {when} a token was issued for {event.subject}{acting}, scope {event.scope}."
    return f"On {when} the login was refused: {describe(refusal)}"
