"""`manage.py` for tests: in this process where possible, in its own to prove what only that can."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.support.servers import CHECKOUT


def output_of(*arguments: str) -> str:
    """The text for people on stdout."""
    out, err = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    assert err.getvalue() == ""
    return out.getvalue()


def json_output_of(*arguments: str) -> dict[str, Any]:
    """The answer for machines on stdout: one JSON object and nothing else."""
    answer: dict[str, Any] = json.loads(output_of(*arguments, "--json"))
    return answer


def error_of(*arguments: str) -> str:
    """The one line on stderr of a command that exits 1."""
    with pytest.raises(CommandError) as fault:
        output_of(*arguments)
    line = str(fault.value).removeprefix("Error: ")
    assert line.strip()
    assert "\n" not in line
    assert fault.value.returncode == 1
    return line


def manage(environment: Mapping[str, str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `manage.py` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=CHECKOUT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr
