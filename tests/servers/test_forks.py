"""A fork of the server of forks finds the state of a new process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers.forks import run_fork, run_python
from tests.servers.service import service_environment

pytestmark = pytest.mark.processes

STATE = """
import json, os, signal, sys, threading, warnings
from django.conf import settings
print(json.dumps({
    "environment": {n: v for n, v in os.environ.items() if n != "OPENSSL_of_no_meaning"},
    "settings": {n: repr(getattr(settings, n)) for n in dir(settings) if n.isupper()},
    "process": [sys.argv, sys.path, os.getcwd(), os.umask(0), list(sys.flags), sys.stdin.read()],
    "warnings": repr(warnings.filters),
    "signals": {int(s): repr(signal.getsignal(s)) for s in signal.valid_signals()
                if s not in (signal.SIGKILL, signal.SIGSTOP)},
    "descriptors": len(os.listdir("/proc/self/fd")),
    "threads": threading.active_count(),
    "ours": sorted(m for m in sys.modules if m.split(".")[0] in ("identity", "tokens", "tests")),
}))
"""


def in_a_process(program: list[str], environment: dict[str, str]) -> Any:
    """With one more variable that only a new interpreter reads, and that changes nothing."""
    return run_python(program, environment | {"OPENSSL_of_no_meaning": ""})


def test_it_finds_the_state_of_a_new_process(tmp_path: Path) -> None:
    environment = service_environment(tmp_path, 0, TIME_ZONE="Asia/Tokyo", OF_THE_TEST="x")
    new, forked = (
        json.loads(run(["manage.py", "shell", "--no-imports", "-c", STATE], environment).stdout)
        for run in (in_a_process, run_fork)
    )
    assert forked == new
    assert forked["settings"]["TIME_ZONE"] == "'Asia/Tokyo'"
