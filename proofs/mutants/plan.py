"""The plan of a run: which modules, which tests, which survivors are explained (`plan.toml`)."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.mutants.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Plan:
    """`modules`: for each module, the arguments of one run of pytest or of several, below `root`.

    What survives one run meets the next one. `survivors`: of each module, the mutants that no test
    can notice, and why.
    """

    root: Path
    modules: Mapping[str, Sequence[tuple[str, ...]]]
    survivors: Mapping[str, Mapping[str, str]]
    killed_percent: float

    def reason(self, mutant: Mutant) -> str:
        """Why this mutant cannot be noticed; empty if nobody has explained it."""
        return self.survivors.get(mutant.module, {}).get(mutant.difference, "")

    def source(self, module: str) -> str:
        return (self.root / module).read_text(encoding="utf-8")


def read_plan(path: Path, root: Path) -> Plan:
    """The plan in this file; a pattern stands for each module that it finds below `root`."""
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    modules: dict[str, list[tuple[str, ...]]] = {}
    for kind in written["runs"]:
        for module, arguments in _runs(kind, root).items():
            modules.setdefault(module, []).append(arguments)
    return Plan(root, modules, written.get("survivors", {}), written["killed_percent"])


def _runs(kind: Mapping[str, Any], root: Path) -> dict[str, tuple[str, ...]]:
    return {
        module: (*kind["arguments"], *kind.get("always", ()), *tests)
        for pattern, tests in kind["modules"].items()
        for module in _modules(pattern, root)
    }


def _modules(pattern: str, root: Path) -> Iterator[str]:
    for module in sorted(root.glob(pattern)):
        if module.name != "__init__.py":
            yield str(module.relative_to(root))
