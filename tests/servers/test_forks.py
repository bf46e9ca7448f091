"""A fork of the server of forks does what a new process does: `manage.py` in every way it ends."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers.forks import can_fork, run_fork, run_python, start_fork
from tests.servers.service import SETTINGS, clean_environment, service_environment

pytestmark = pytest.mark.processes

STATE = """
import json, logging, os, resource, signal, stat, sys, threading, time, warnings
from django.conf import settings
files = {
    name: [f.fileno(), f.mode, f.encoding, f.errors, f.line_buffering, f.isatty()]
    for name, f in (("in", sys.stdin), ("out", sys.stdout), ("err", sys.stderr))
}
print(json.dumps({
    "environment": dict(os.environ),
    "settings": {n: repr(getattr(settings, n)) for n in dir(settings) if n.isupper()},
    "arguments": sys.argv,
    "path": sys.path,
    "folder": os.getcwd(),
    "umask": os.umask(0),
    "user": [os.getuid(), os.getgid()],
    "flags": list(sys.flags),
    "warnings": repr(warnings.filters),
    "signals": {int(s): repr(signal.getsignal(s)) for s in signal.valid_signals()
                if s not in (signal.SIGKILL, signal.SIGSTOP)},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "limits": [resource.getrlimit(n) for n in range(16)],
    "files": files,
    "stdin": sys.stdin.read(),
    "descriptors": len(os.listdir("/proc/self/fd")),
    "threads": threading.active_count(),
    "loggers": repr(logging.getLogger().handlers),
    "time": time.tzname,
    "ours": sorted(m for m in sys.modules if m.split(".")[0] in
                   ("identity", "tokens", "taxpayers", "tests", "allauth", "unfold")),
}))
"""
NEW = {"OPENSSL_of_no_meaning": ""}
SHELL = ("shell", "--no-imports", "-c")
# A shell starts what runs in its background without.
INTERRUPTIBLE = "import os, signal; signal.signal(2, signal.default_int_handler)"
Run = Callable[[list[str], dict[str, str]], "subprocess.CompletedProcess[str]"]


def in_a_process(program: list[str], environment: dict[str, str]) -> Any:
    """With one more variable that only a new interpreter reads, and that changes nothing."""
    return run_python(program, environment | NEW)


def ended(run: Run, environment: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    done = run(["manage.py", *arguments], environment)
    out, err = (
        re.sub(r'"(?:time|pid)": ?"?[^,"]*"?', "", text) for text in (done.stdout, done.stderr)
    )
    # Below `manage.py` a traceback names what has started it.
    return (
        done.returncode,
        out,
        re.sub(r'(?s)(\(most recent call last\):\n).*?(?=  File "\S*manage.py)', r"\1", err),
    )


def test_it_finds_the_state_of_a_new_process(tmp_path: Path) -> None:
    environment = service_environment(tmp_path, 0, TIME_ZONE="Asia/Tokyo", OF_THE_TEST="x")
    new, forked = (
        json.loads(run(["manage.py", *SHELL, STATE], environment).stdout)
        for run in (in_a_process, run_fork)
    )
    new["environment"] = {n: v for n, v in new["environment"].items() if n not in NEW}
    assert forked == new
    assert forked["environment"]["OF_THE_TEST"] == "x"
    assert forked["settings"]["TIME_ZONE"] == "'Asia/Tokyo'"


@pytest.mark.parametrize(
    ("arguments", "settings", "code"),
    [
        (("check",), {}, 0),
        (("check",), {"SERVE": "login"}, 0),
        (("check",), {"WEB_PROCESSES": "abc", "AUTH_URL": "x"}, 1),
        (("check", "--deploy", "--fail-level", "WARNING"), {}, 1),
        (("check",), {"SERVE": "nothing"}, 1),
        (("check",), {"SECRET_KEY_FILE": "/nowhere"}, 1),
        (("frobnicate",), {}, 1),
        (("register_taxpayer",), {}, 1),
        (("register_taxpayer", "C1234567890", "--name", "A"), {}, 1),
        (("migrate",), {"DATABASE_URL": "postgresql://x@127.0.0.1:1/x"}, 1),
        (("migrate", "--traceback"), {"DATABASE_URL": "postgresql://x@127.0.0.1:1/x"}, 1),
        ((*SHELL, "raise SystemExit(7)"), {}, 7),
        ((*SHELL, "import os; os._exit(9)"), {}, 9),
        ((*SHELL, "raise KeyboardInterrupt"), {}, 1),
        ((*SHELL, f"{INTERRUPTIBLE}; os.kill(os.getpid(), 2); signal.pause()"), {}, 1),
        ((*SHELL, f"{INTERRUPTIBLE}; os.kill(os.getpid(), 15); signal.pause()"), {}, -15),
        ((*SHELL, "import os; os.abort()"), {}, -6),
        ((*SHELL, "import atexit; atexit.register(print, 'bye'); print('now')"), {}, 0),
        ((*SHELL, "import sys; sys.stdout.write('not'); sys.stderr.write('ended')"), {}, 0),
        ((*SHELL, "import tokens.views.nothing"), {}, 1),
    ],
    ids=str,
)  # fmt: skip
def test_it_ends_as_a_new_process(
    tmp_path: Path, arguments: tuple[str, ...], settings: dict[str, str], code: int
) -> None:
    environment = service_environment(tmp_path, 0, **settings)
    new = ended(in_a_process, environment, *arguments)
    assert ended(run_fork, environment, *arguments) == new
    assert new[0] == code


def test_one_knows_nothing_of_another(tmp_path: Path) -> None:
    leave = (
        "import os, sys, django; os.environ['LEFT'] = 'x'; django.left = 1; sys.path.append('y')"
    )
    environment = service_environment(tmp_path, 0)
    assert run_fork(["manage.py", *SHELL, leave], environment).returncode == 0
    find = "import os, django; print(os.environ.get('LEFT'), hasattr(django, 'left'))"
    assert run_fork(["manage.py", *SHELL, find], environment).stdout == "None False\n"


def test_it_is_stopped_and_waited_for(tmp_path: Path) -> None:
    wait = "import time; print('waits', flush=True); time.sleep(60)"
    with tempfile.TemporaryFile() as out:
        fork = start_fork(
            ["manage.py", *SHELL, wait],
            service_environment(tmp_path, 0),
            stdout=out,
            stderr=out,
            new_session=True,
        )
        assert fork.poll() is None
        assert os.getsid(fork.pid) == fork.pid
        with pytest.raises(subprocess.TimeoutExpired):
            fork.wait(0)
        fork.send_signal(signal.SIGTERM)
        assert fork.wait(20) == fork.poll() == -signal.SIGTERM


@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "LC_ALL", "TZ"])
def test_what_only_a_new_interpreter_reads_gets_one(name: str) -> None:
    assert can_fork({**os.environ, "SERVE": "login"})
    assert not can_fork({**os.environ, name: "C"})


READ = """
import importlib, os, sys
from tests.servers.fork_server import LIBRARIES
read, of_environment = set(), os._Environ.__getitem__
os._Environ.__getitem__ = lambda self, name: read.add(name) or of_environment(self, name)
for library in LIBRARIES:
    importlib.import_module(library)
print(*read, *sys.modules)
"""


def test_no_library_reads_a_setting_before_the_fork_has_its_own() -> None:
    wanted = {*SETTINGS, "FORWARDED_ALLOW_IPS", "PROMETHEUS_MULTIPROC_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", READ],
        # One of them copies all that is there, and tests before this one may have set something.
        env={name: value for name, value in clean_environment().items() if name not in wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    found = set(done.stdout.split())
    assert "psycopg" in found
    assert found.isdisjoint(wanted)
    assert found.isdisjoint({"prometheus_client", "gunicorn.config", "identity", "allauth"})
