"""The plan of a run: which modules, which tests, which survivors are explained (`plan.toml`)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutants import Mutant


@dataclass(frozen=True, slots=True)
class Plan:
    """`modules`: the arguments of pytest for each module, below `root`.

    `survivors`: of each module, the mutants that no test can notice, and why.
    """

    root: Path
    modules: Mapping[str, tuple[str, ...]]
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
    arguments, always = written["arguments"], written.get("always", ())
    modules = {
        str(module.relative_to(root)): (*arguments, *tests, *always)
        for pattern, tests in written["modules"].items()
        for module in sorted(root.glob(pattern))
        if module.name != "__init__.py"
    }
    return Plan(root, modules, written.get("survivors", {}), written["killed_percent"])
