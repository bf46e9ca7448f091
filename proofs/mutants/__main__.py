"""`make mutants`: do the tests notice a fault in what decides, counts, signs and verifies?

`python -m proofs.mutants [MODULE…] [--minutes N] [--again] [--list]`. Each mutant is one small
fault in one module of `plan.toml`; the tests of that module must fail. A run that was stopped goes on
where it ended. The exit status is 1 if a survivor is not explained or too few were killed, and 2 if
the time was too short.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from proofs.mutants.forks import Limits
from proofs.mutants.functions import changes_only_functions
from proofs.mutants.mutants import Mutant, mutants_of
from proofs.mutants.plan import Plan, read_plan
from proofs.mutants.quick import run_quickly
from proofs.mutants.results import Results
from proofs.mutants.runner import NoVerdict, Outcome, Run, prepare, run_tests

_HERE = Path(__file__).resolve().parent
_SURVIVED = Run(Outcome.SURVIVED)


@dataclass
class Report:
    """What became of the mutants of this run."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    explained: int = 0
    unexplained: list[Mutant] = field(default_factory=list)
    missing: int = 0
    without_verdict: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.outcomes.total()

    @property
    def killed_percent(self) -> float:
        survived = self.outcomes[Outcome.SURVIVED]
        return 100 * (self.total - survived) / self.total if self.total else 100.0


def main() -> int:
    """See the module; 0 if every survivor is explained and enough mutants were killed."""
    options = _options()
    root = options.root.resolve()
    os.chdir(root)
    sys.path.insert(0, str(root))
    plan = read_plan(options.plan, root)
    chosen = [name for name in plan.modules if name.startswith(tuple(options.modules) or "")]
    if not chosen:
        _say(f"No module of the plan begins with {' or '.join(options.modules)}.")
        return 1
    if options.list:
        for module in chosen:
            for mutant in mutants_of(module, plan.source(module)):
                _say(f"{module}: {mutant.difference}")
        return 0
    folder = root / "var" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    results = Results(folder / "results.jsonl")
    if options.again:
        results.runs.clear()
    prepare()
    report = Report()
    until = time.monotonic() + 60 * options.minutes
    for module in chosen:
        try:
            _run_module(plan, module, results, report, until)
        except NoVerdict as written:
            report.without_verdict.append(module)
            _say(
                f"The tests of {module} do not pass without a mutant, or there are none:\n{written}"
            )
    return _verdict(plan, report)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Do the tests notice a fault?")
    parser.add_argument("modules", nargs="*", help="the beginning of their paths; none: all")
    parser.add_argument("--minutes", type=float, default=240, help="stop after that time (240)")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--plan", type=Path, default=_HERE / "plan.toml")
    parser.add_argument("--root", type=Path, default=_HERE.parents[1], help="of the modules")
    return parser.parse_args()


def _run_module(plan: Plan, module: str, results: Results, report: Report, until: float) -> None:
    output = results.path.with_name("output.txt")
    runs = plan.modules[module]
    mutants = list(mutants_of(module, plan.source(module)))
    waiting = [mutant for mutant in mutants if not _is_settled(plan, mutant, results)]
    survived = _try_quickly(plan, module, waiting, results, until)
    limits: list[Limits] = []
    for mutant in waiting:
        if results.is_killed(mutant):
            continue
        if time.monotonic() >= until:
            report.missing += 1
            continue
        if plan.reason(mutant):  # counts as not killed, so nobody has to try harder
            results.store(mutant, _SURVIVED)
            continue
        run = _SURVIVED
        if mutant.id not in survived:
            limits = limits or [_limits(tests, output) for tests in runs]
            pairs = zip(runs, limits, strict=True)
            done = (run_tests(tests, output, mutant, limit) for tests, limit in pairs)
            run = next((one for one in done if one.outcome is not Outcome.SURVIVED), _SURVIVED)
        results.store(mutant, run)
        if run.outcome is Outcome.SURVIVED:
            _say(f"SURVIVED {module}\n  {_line(mutant)}")
    _say(_add_up(plan, module, mutants, results, report))


def _try_quickly(
    plan: Plan, module: str, mutants: list[Mutant], results: Results, until: float
) -> set[str]:
    """Stores which mutants of functions a test notices; the ids of those that none can notice."""
    source, output = plan.source(module), results.path.with_name("output.txt")
    left = [mutant for mutant in mutants if changes_only_functions(source, mutant.source)]
    survived: Counter[str] = Counter()  # so many of the runs
    for number, tests in enumerate(plan.modules[module]):
        left = [mutant for mutant in left if not results.is_killed(mutant)]
        if number:  # an explained one counts as not killed: it is worth the first run alone
            left = [mutant for mutant in left if not plan.reason(mutant)]
        if not left or time.monotonic() >= until:
            break
        with closing(run_quickly(tests, output, plan.root, left)) as tried:
            for mutant, run in tried:
                if run.outcome is Outcome.SURVIVED:
                    survived[mutant.id] += 1
                else:
                    results.store(mutant, run)
                if time.monotonic() >= until:
                    break
    return {id_ for id_, runs in survived.items() if runs == len(plan.modules[module])}


def _is_settled(plan: Plan, mutant: Mutant, results: Results) -> bool:
    """Killed, or known to survive and explained. Other survivors are tried again."""
    is_explained = mutant.id in results.runs and bool(plan.reason(mutant))
    return is_explained or results.is_killed(mutant)


def _limits(tests: tuple[str, ...], output: Path) -> Limits:
    """By a run without a mutant, which must pass."""
    unchanged = run_tests(tests, output)
    if unchanged.outcome is not Outcome.SURVIVED:
        raise NoVerdict(output.read_text(encoding="utf-8"))
    return Limits.after(unchanged.cpu_seconds)


def _add_up(
    plan: Plan, module: str, mutants: list[Mutant], results: Results, report: Report
) -> str:
    killed = explained = 0
    for mutant in mutants:
        run = results.runs.get(mutant.id)
        if run is None:
            continue
        report.outcomes[run.outcome] += 1
        if run.outcome is not Outcome.SURVIVED:
            killed += 1
        elif plan.reason(mutant):
            explained += 1
        else:
            report.unexplained.append(mutant)
    report.explained += explained
    return f"{module}: {killed} of {len(mutants)} killed, {explained} explained"


def _verdict(plan: Plan, report: Report) -> int:
    _say("")
    for mutant in report.unexplained:
        _say(f"not explained: {mutant.module}\n  {_line(mutant)}")
    _say(
        f"{report.total} mutants, {report.killed_percent:.1f} % killed"
        f" ({report.outcomes[Outcome.TIMEOUT]} of them by a time limit);"
        f" survived: {report.explained} explained, {len(report.unexplained)} not"
    )
    if report.without_verdict:
        _say(f"FAILED: without a mutant the tests must pass: {', '.join(report.without_verdict)}")
        return 1
    if report.unexplained or report.killed_percent < plan.killed_percent:
        _say(f"FAILED: kill or explain each survivor; at least {plan.killed_percent} % are killed")
        return 1
    if report.missing:
        _say(f"NOT FINISHED: {report.missing} mutants wait for the next run")
        return 2
    return 0


def _line(mutant: Mutant) -> str:
    """As it stands in `plan.toml`, with the reason still to be written."""
    return f'{json.dumps(mutant.difference, ensure_ascii=False)} = "…"'


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
