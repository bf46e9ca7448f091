"""What a drill found, as lines of text."""

from typing import Any

from proofs.chaos.answers import NO_ANSWER
from proofs.chaos.drill import Result
from proofs.chaos.promises import Observed


def line_of(result: Result[Any]) -> str:
    """One scenario: how its logins were answered, what is noted, and which promises broke."""
    name = result.scenario.name
    if result.not_tested:
        return f"{name:18} NOT TESTED: {result.not_tested}"
    if result.seen is None:
        return f"{name:18} FAILED: {'; '.join(result.broken)}"
    seen = result.seen
    figures = (
        f"{len(seen.answers):6} answers, honest {_statuses(seen, is_honest=True)},"
        f" others {_statuses(seen, is_honest=False)},"
        f" slowest {seen.slowest:.1f} s, recovery {seen.recovery_seconds:.1f} s,"
        f" {len(seen.never_received)} stored as issued and never received,"
        f" {result.seconds:.0f} s"
    )
    problems = "".join(f"\n    FAILED: {text}" for text in result.broken)
    notes = "".join(f"\n    {text}" for text in seen.notes)
    return f"{name:18} {figures}{notes}{problems}"


def _statuses(seen: Observed, *, is_honest: bool) -> str:
    counts = sorted((status, n) for (own, status), n in seen.statuses.items() if own is is_honest)
    return ", ".join(
        f"{count:,} {'without answer' if status == NO_ANSWER else f'x {status}'}"
        for status, count in counts
    )
