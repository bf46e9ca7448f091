"""`make interleavings`: a long run against a new PostgreSQL.

`python -m proofs.interleavings --steps 1000000 [--seed N]`; a seed repeats a run exactly.
"""

import argparse
import random
import sys
import time
from pathlib import Path

from tests.servers.postgres import start_postgres
from tests.servers.processes import folder_of_program, stopping
from tests.servers.service import set_django_up

_EVERY_KIND_STEPS = 100_000  # in so many each kind of change is made


def main() -> int:
    """0 if every claim holds."""
    parser = argparse.ArgumentParser(description="Logins and changes in random order.")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))  # noqa: S311
    options = parser.parse_args()
    with folder_of_program("interleavings") as folder, stopping(server := start_postgres()):
        set_django_up(folder, server.create_database())
        return _run(options.seed, options.steps, folder)


def _run(seed: int, steps: int, folder: Path) -> int:
    from django.core.management import call_command

    from proofs.interleavings.changes.registrar import KINDS
    from proofs.interleavings.run import RunFailed, run

    call_command("migrate", verbosity=0)
    sys.stdout.write(f"seed {seed}, {steps} steps\n")
    sys.stdout.flush()
    began = time.monotonic()
    try:
        state = run(seed, steps, folder)
    except RunFailed as failure:
        sys.stdout.write(f"{failure}\n")
        return 1
    seconds = time.monotonic() - began
    sys.stdout.write(f"every claim holds, {seconds:.0f} s\n")
    sys.stdout.write(f"digest {state.digest}\n")
    for counted in (state.outcomes, state.changes):
        listed = ", ".join(f"{name} {count}" for name, count in counted.most_common())
        sys.stdout.write(f"{listed}\n")
    never = [kind.name for kind in KINDS if not state.changes[kind.name]]
    if never and steps >= _EVERY_KIND_STEPS:
        sys.stdout.write(f"never made: {', '.join(never)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
