"""What a drill found, as the table of docs/reliability.md."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from os import cpu_count
from typing import Any

from proofs.chaos.answers import NO_ANSWER
from proofs.chaos.drill import Result
from proofs.chaos.promises import Observed
from tests.servers.processes import CHECKOUT

DOCUMENT = CHECKOUT / "docs" / "reliability.md"
DRILL = ("<!-- drill -->", "<!-- /drill -->")
PATRONI = ("<!-- patroni -->", "<!-- /patroni -->")
_HEAD = (
    "| scenario | what is done | honest logins | slowest s | recovery s | not received |\n"
    "| --- | --- | --- | ---: | ---: | ---: |"
)


def written(results: Sequence[Result[Any]], minutes: float) -> str:
    """The part of the document that the drill writes."""
    ran = [result for result in results if result.seen]
    passed = [result for result in ran if not result.broken]
    answers = sum(len(result.seen.answers) for result in ran if result.seen)
    parts = [
        f"{len(passed)} of {len(ran)} scenarios passed; {answers:,} answers."
        f" {datetime.now(UTC):%Y-%m-%d}, {minutes:.0f} minutes, {_machine()}.",
        "\n".join([_HEAD, *(_row(result) for result in ran)]),
        *_list("Failed", [(r.scenario.name, text) for r in results for text in r.broken]),
        *_list("Not tested", [(r.scenario.name, r.not_tested) for r in results if r.not_tested]),
    ]
    return "\n\n".join(parts)


def line_of(result: Result[Any]) -> str:
    """One line for the terminal."""
    name = result.scenario.name
    if result.not_tested:
        return f"{name:18} NOT TESTED: {result.not_tested}"
    if result.seen is None:
        return f"{name:18} FAILED: {'; '.join(result.broken)}"
    seen = result.seen
    figures = (
        f"{len(seen.answers):6} answers, honest {_statuses(seen, is_honest=True)},"
        f" slowest {seen.slowest:.1f} s, recovery {seen.recovery_seconds:.1f} s,"
        f" {len(seen.never_received)} tokens not received, {result.seconds:.0f} s"
    )
    problems = "".join(f"\n    FAILED: {text}" for text in result.broken)
    notes = "".join(f"\n    {text}" for text in seen.notes)
    return f"{name:18} {figures}{notes}{problems}"


def write(text: str, marks: tuple[str, str] = DRILL) -> None:
    """Replaces what an earlier drill wrote between these marks."""
    begin, end = marks
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    DOCUMENT.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def _row(result: Result[Any]) -> str:
    seen = result.seen
    assert seen is not None
    cells = (
        result.scenario.name,
        result.scenario.title,
        _statuses(seen, is_honest=True),
        f"{seen.slowest:.1f}",
        f"{seen.recovery_seconds:.1f}",
        str(len(seen.never_received)),
    )
    return f"| {' | '.join(cells)} |"


def _statuses(seen: Observed, *, is_honest: bool) -> str:
    counts = sorted((status, n) for (own, status), n in seen.statuses.items() if own is is_honest)
    return ", ".join(
        f"{count:,} {'without answer' if status == NO_ANSWER else f'x {status}'}"
        for status, count in counts
    )


def _list(title: str, items: Sequence[tuple[str, str]]) -> list[str]:
    if not items:
        return []
    return [f"**{title}**", "\n".join(f"- {name}: {text}" for name, text in items)]


def _machine() -> str:
    return f"{cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"
