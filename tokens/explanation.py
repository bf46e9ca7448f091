"""Why a login ended so, only by its event: every check, and what to do next (contract 6)."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext_noop as _

from taxpayers.credential_kind import CredentialKind
from taxpayers.rules import Refused
from tokens.answers.description import describe, format_moment_with_offset
from tokens.models import LoginEvent
from tokens.refusals.table import ON_BEHALF_CHECKS, REFUSALS, Check, kind_named_by


class CheckState(StrEnum):
    PASSED = _("passed")
    FAILED = _("failed")
    NOT_REACHED = _("not reached")
    NOT_ASKED = _("not asked")  # only asked of a login on behalf of another taxpayer
    NOT_CHECKED = _("not checked")  # by a simulation, which has no request


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check of a login ended, and what the client was told where it failed."""

    check: Check
    state: CheckState
    kind: CredentialKind  # what the login was with
    advice: str = ""

    @property
    def question(self) -> str:
        return self.check.question(self.kind)


@dataclass(frozen=True, slots=True)
class Explanation:
    """All checks in the contract's order, and the outcome in one sentence."""

    outcome: str
    results: tuple[CheckResult, ...]

    def as_json(self) -> dict[str, object]:
        """For machines, in English."""
        checks = [
            {"question": one.question, "state": one.state, "advice": one.advice or None}
            for one in self.results
        ]
        return {"explanation": self.outcome, "checks": checks}


def refusal_of(event: LoginEvent) -> Refused | None:
    """The refusal that the event records; None if a token was issued."""
    if event.is_issued:
        return None
    return Refused(event.reason, since=event.since, parameter=event.parameter, detail=event.detail)


def explain(event: LoginEvent, kind: CredentialKind | None = None) -> Explanation:
    """Every check of this login, with advice for the failed; `kind`: None: as its refusal says."""
    refused = refusal_of(event)
    kind = kind or kind_named_by(event.parameter)
    return Explanation(
        _outcome(event, refused), results_of(refused, is_on_behalf=event.is_on_behalf, kind=kind)
    )


def results_of(
    refused: Refused | None,
    *,
    is_on_behalf: bool,
    kind: CredentialKind = CredentialKind.SECRET,
    checks: Set[Check] = frozenset(Check),
    unchecked: Set[Check] = frozenset(),
    translate: Callable[[str], str] = str,
) -> tuple[CheckResult, ...]:
    """How each of `checks` ended for a login with this kind that ended so (None: with a token).

    `unchecked`: those of them that nothing is known of. The advice is what the client was told, in
    English unless `translate` is another language.
    """
    failed = REFUSALS[refused.reason].check if refused else None
    # Where the service itself failed, it is unknown which checks were passed.
    state = CheckState.NOT_REACHED if refused and failed is None else CheckState.PASSED
    results = []
    for check in Check:
        if check not in checks:
            continue
        if refused and check is failed:
            advice = describe(refused, translate)
            results.append(CheckResult(check, CheckState.FAILED, kind, advice))
            state = CheckState.NOT_REACHED
        elif check in unchecked:
            results.append(CheckResult(check, CheckState.NOT_CHECKED, kind))
        elif state is CheckState.PASSED and check in ON_BEHALF_CHECKS and not is_on_behalf:
            results.append(CheckResult(check, CheckState.NOT_ASKED, kind))
        else:
            results.append(CheckResult(check, state, kind))
    return tuple(results)


def _outcome(event: LoginEvent, refused: Refused | None) -> str:
    when = format_moment_with_offset(event.at)
    if refused is None:
        acting = f", {event.actor} acting for it" if event.actor else ""
        return f"On {when} a token was issued for {event.subject}{acting}, scope {event.scope}."
    return f"On {when} the login was refused: {describe(refused)}"
