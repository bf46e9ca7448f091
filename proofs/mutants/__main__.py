"""`make mutants`: do the tests notice a fault in what decides, counts, signs and verifies?

Each mutant is one small fault in one module of `plan.toml`; the tests of its room must fail. A run
that was stopped goes on where it ended. The exit status is 1 if a survivor is not explained or too
few were killed.
"""

import argparse
import json
import os
import random
import re
import signal
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofs.mutants.in_memory import try_in_memory
from proofs.mutants.making import Mutant, mutants_of
from proofs.mutants.trying import TIME_IS_OVER, Copy, Known, function_at, learn, prepare, try_each

_HERE = Path(__file__).resolve().parent


@dataclass
class Room:
    """Modules, the tests that must notice a mutant of them, and how these run."""

    modules: list[str]
    tests: list[str]
    databases: list[str]
    is_core: bool
    has_programs: bool  # tests start what is in the modules: also these tests are tried


@dataclass
class Report:
    """`killed`: for each mutant that was tried, whether a test failed."""

    path: Path
    killed: dict[str, bool] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)  # tests, or modules, without a mutant

    def store(self, mutant: Mutant, *, killed: bool) -> None:
        self.killed[mutant.id] = killed
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.id, killed, mutant.module, mutant.difference]) + "\n")
        if not killed:
            difference = json.dumps(mutant.difference, ensure_ascii=False)
            _say(f"SURVIVED {mutant.module}:{mutant.line}\n  {difference}")


def main() -> int:
    """See the module; 0 if every survivor is explained and enough mutants were killed."""
    options = _options()
    root = options.root.resolve()
    plan = tomllib.loads(options.plan.read_text(encoding="utf-8"))
    rooms = list(_rooms(plan, root, options.only))
    modules = [module for room in rooms for module in room.modules]
    mutants = [one for module in modules for one in mutants_of(module, _source(root, module))]
    explained = _explained(plan, mutants)
    names = {(one.module, one.difference) for one in mutants}
    stale = [
        f"{module}: {name}"
        for module in explained.keys() & set(modules)
        for name in explained[module]
        if (module, name) not in names
    ]
    if options.sample:
        most = min(options.sample, len(mutants))
        chosen = [random.Random(seed).sample(mutants, most) for seed in options.seed]  # noqa: S311
        mutants = list({one.id: one for sample in chosen for one in sample}.values())
    folder = root / "var" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(folder / "results.jsonl")
    if report.path.exists():
        for line in report.path.read_text(encoding="utf-8").splitlines():
            name, killed, *_ = json.loads(line)
            report.killed[name] = killed
    to_try = [
        one
        for one in mutants
        if not report.killed.get(one.id) and one.difference not in explained.get(one.module, {})
    ]
    for one in to_try:
        report.killed.pop(one.id, None)  # there may be another test since
    prepare()
    copies = [Copy(root, folder / f"copy-{number}") for number in range(options.processes)]
    for room in rooms:
        _try(room, [one for one in to_try if one.module in room.modules], report, copies)
    wanted = plan["killed_percent"]["core" if all(room.is_core for room in rooms) else "others"]
    return _verdict(mutants, explained, report, stale, wanted)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Do the tests notice a fault?")
    parser.add_argument("--only", nargs="+", help="the beginning of paths; none: the core")
    parser.add_argument("--sample", type=int, help="so many of them, chosen by chance")
    parser.add_argument("--seed", type=int, nargs="+", default=[7], help="of each choice (7)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at once")
    parser.add_argument("--plan", type=Path, default=_HERE / "plan.toml")
    parser.add_argument("--root", type=Path, default=_HERE.parents[1], help="of the modules")
    return parser.parse_args()


def _rooms(plan: dict[str, Any], root: Path, only: Sequence[str] | None) -> Iterator[Room]:
    taken: set[str] = set()
    for room in plan["rooms"]:
        paths = {path for pattern in room["modules"] for path in root.glob(pattern)}
        found = sorted(str(path.relative_to(root)) for path in paths)
        found = [one for one in found if "/migrations/" not in one and one not in taken]
        modules = [one for one in found if not one.endswith("__init__.py")]
        taken.update(modules)
        is_core = room.get("core", True)
        modules = [one for one in modules if one.startswith(tuple(only or ("",)))]
        if modules and (only or is_core):
            databases = room.get("databases", ["sqlite"])
            yield Room(modules, room["tests"], databases, is_core, room.get("programs", False))


def _explained(plan: dict[str, Any], mutants: Sequence[Mutant]) -> dict[str, dict[str, str]]:
    """Of each module the mutants that no test can notice, with the reason."""
    explained: dict[str, dict[str, str]] = plan.get("survivors", {})
    for one in mutants:
        for alike, why in plan.get("alike", {}).items():
            if re.fullmatch(alike, one.difference):
                explained.setdefault(one.module, {})[one.difference] = why
    return explained


def _try(room: Room, mutants: list[Mutant], report: Report, copies: Sequence[Copy]) -> None:
    """Those that the tests notice on one of the room's databases are stored as killed."""
    for database in room.databases:
        if not mutants:
            return
        arguments = [] if room.has_programs else ["-m", "not (processes or slow or long)"]
        arguments += [f"--database={database}"] if database else []
        began = time.monotonic()
        known = learn(copies[0], [*arguments, *room.tests])
        if known is None or known.failed:
            output = copies[0].output.read_text(encoding="utf-8", errors="replace")
            _say(f"Without a mutant these do not pass: {' '.join(room.tests)}\n{output[-3000:]}")
            report.failed += known.failed if known else room.modules
        if known is None:
            return
        tests, seconds = len(known.seconds), time.monotonic() - began
        _say(f"{tests} tests, {seconds:.0f} s: {' '.join(room.modules)}")
        mutants = list(_survivors(mutants, known, arguments, report, copies))
    for mutant in mutants:
        report.store(mutant, killed=False)


def _survivors(
    mutants: Sequence[Mutant],
    known: Known,
    arguments: Sequence[str],
    report: Report,
    copies: Sequence[Copy],
) -> Iterator[Mutant]:
    tests = {}
    for one in mutants:
        function = function_at(_source(copies[0].original, one.module), one.line)
        tests[one] = known.tests_for(one.module, function)
    statuses = try_in_memory(copies, known, tests, arguments)
    for one, status in statuses.items():
        _store_if_killed(one, status, report)
        tests[one] = [test for test in tests[one] if known.starts_programs(test)]
    left = {one: tests[one] for one in mutants if not statuses.get(one)}
    for one, status in try_each(copies, known, left, arguments):
        _store_if_killed(one, status, report)
        if not status:
            yield one


def _store_if_killed(mutant: Mutant, status: int, report: Report) -> None:
    if status in (TIME_IS_OVER, -signal.SIGALRM):
        _say(f"DID NOT END {mutant.module}:{mutant.line}  {mutant.difference}")
    if status:
        report.store(mutant, killed=True)


def _verdict(
    mutants: Sequence[Mutant],
    explained: dict[str, dict[str, str]],
    report: Report,
    stale: Sequence[str],
    wanted: float,
) -> int:
    left = [one for one in mutants if not report.killed.get(one.id)]
    unexplained = [one for one in left if one.difference not in explained.get(one.module, {})]
    survivors = [one for one in unexplained if one.id in report.killed]
    killed, reasons = len(mutants) - len(left), len(left) - len(unexplained)
    tried = killed + len(survivors)
    percent = 100 * killed / tried if tried else 100
    for name in stale:
        _say(f"explained, but no mutant: {name}")
    _say(
        f"{percent:.1f} % of {tried} mutants killed; survived: {len(survivors)}, and"
        f" {reasons} that change nothing"
    )
    if report.failed:
        _say(f"FAILED: without a mutant the tests must pass: {', '.join(report.failed)}")
    elif survivors or stale or percent < wanted:
        _say(f"FAILED: kill or explain each survivor; at least {wanted} % are killed")
    else:
        return 0
    return 1


def _source(root: Path, module: str) -> str:
    return (root / module).read_text(encoding="utf-8")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
