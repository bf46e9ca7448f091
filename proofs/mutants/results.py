"""What is known of each mutant, in a file: a run that was stopped goes on where it ended."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from proofs.mutants.mutants import Mutant
from proofs.mutants.runner import Outcome, Run


@dataclass
class Results:
    """The outcomes of earlier runs, by the ids of the mutants."""

    path: Path
    runs: dict[str, Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self.runs[entry["id"]] = Run(Outcome(entry["outcome"]), entry["killed_by"])

    def is_killed(self, mutant: Mutant) -> bool:
        """Whether a test failed; of one that survived, there may be another test since."""
        run = self.runs.get(mutant.id)
        return run is not None and run.outcome is not Outcome.SURVIVED

    def store(self, mutant: Mutant, run: Run) -> None:
        self.runs[mutant.id] = run
        entry = {
            "id": mutant.id,
            "module": mutant.module,
            "difference": mutant.difference,
            "outcome": run.outcome,
            "killed_by": run.killed_by,
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
