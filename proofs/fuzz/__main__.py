"""`make fuzz`: a long run against the service as it runs in production.

`python -m proofs.fuzz --inputs 1000000 [--seed N] [--minutes M]`, or
`--replay FILE` for what an earlier run has stored.
"""

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

from proofs.fuzz.corpus import read_inputs
from proofs.fuzz.planted import plant
from proofs.fuzz.run import Run, random_inputs
from tests.servers.postgres import start_postgres
from tests.servers.processes import CHECKOUT, folder_of_program, free_port, stopping
from tests.servers.service import Service, manage, service_environment, start_service

# Every connection comes from another address, may name another one in X-Forwarded-For, and may
# report certificates.
SETTINGS = {
    "TRUSTED_PROXIES": "127.0.0.0/8",
    "MTLS_URL": "https://mtls.example.org",
    "PYTHONFAULTHANDLER": "1",
}


def main() -> int:
    """0 if every invariant holds."""
    parser = argparse.ArgumentParser(description="Random bytes against the running service.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))  # noqa: S311
    parser.add_argument("--minutes", type=float, default=60.0, help="at most so long")
    parser.add_argument("--replay", type=Path, help="a corpus file instead of random inputs")
    options = parser.parse_args()
    with folder_of_program("fuzz") as folder, stopping(server := start_postgres()):
        settings = SETTINGS | {"DATABASE_URL": server.create_database()}
        environment = service_environment(folder, free_port(), **settings)
        manage(environment, "migrate")
        with stopping(service := start_service(environment, folder / "service.log")):
            return _run(service, options)


def _run(service: Service, options: argparse.Namespace) -> int:
    def command(*arguments: str) -> Any:
        return json.loads(manage(service.environment, *arguments, "--json"))

    planted = plant(service.url, command)
    failures_file = CHECKOUT / "var" / f"fuzz-{options.seed}.txt"
    failures_file.unlink(missing_ok=True)
    run = Run(service, planted, options.seed, failures_file)
    rng = random.Random(options.seed)  # noqa: S311 - a run must be repeatable
    inputs, count = random_inputs(rng, planted, options.inputs), options.inputs
    if options.replay:
        stored = list(read_inputs(options.replay, planted))
        inputs, count = iter(stored), len(stored)
    sys.stdout.write(f"seed {options.seed}, {count:,} inputs\n")
    sys.stdout.flush()
    findings = run.run(inputs, count, options.minutes)
    sys.stdout.write("".join(f"{failure}\n" for failure in findings.failures))
    sys.stdout.write(f"{findings}\n")
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
