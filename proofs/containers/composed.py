"""`deploy/container/compose.yaml` as Docker Compose itself reads it, with the example of `.env`."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tests.servers.processes import CHECKOUT, NotAvailable, completed

FOLDER = CHECKOUT / "deploy" / "container"
EXAMPLE = FOLDER / "example.env"


def compose(*arguments: str, environment: Path = EXAMPLE) -> subprocess.CompletedProcess[str]:
    """What `docker compose` with these arguments did; it needs no daemon to read the file."""
    beside = Path(sys.executable).with_name("docker-compose")
    program = str(beside) if beside.exists() else shutil.which("docker-compose")
    if program is None:
        raise NotAvailable("no docker-compose here (make .venv/.dev-installed)")
    command = [program, "--env-file", str(environment), "--file", str(FOLDER / "compose.yaml")]
    return completed([*command, *arguments])


@cache
def rendered() -> dict[str, Any]:
    done = compose("--profile", "*", "config", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = rendered()["services"][name]
    return found
