"""`manage.py` and the server as forks of one process that has imported the libraries already.

A program starts in half of the time, and is the same in everything that a test can see: each case
of `test_forks.py` compares it with the real one. What an interpreter reads from its environment
before any code runs cannot be changed by a fork: with another such environment it is a new process.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

_CHECKOUT = Path(__file__).resolve().parents[2]
_PROGRAM = Path(__file__).with_name("fork_server.py")
_READ_TOO_EARLY = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "TZ", "OPENSSL_", "PSYCOPG_", "LMDB_")
_lock = threading.Lock()


@dataclass
class Fork:
    """A program in a fork, with what tests use of `subprocess.Popen`."""

    args: Sequence[str]
    pid: int
    _report: IO[str]
    returncode: Any = None

    def poll(self) -> int | None:
        return int(self.returncode) if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
        return int(self.returncode)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float | None) -> bool:
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            # Without a line the server was killed, and its forks are nobody's children.
            self.returncode = int(self._report.readline() or -signal.SIGKILL)
            self._report.close()
        return self.returncode is not None


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a fork can have this environment."""
    return _of_the_interpreter(environment) == _of_the_interpreter(os.environ)


def _of_the_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    names = (name for name in environment if name.startswith(_READ_TOO_EARLY))
    return {name: environment[name] for name in names}


def start_fork(
    program: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdout: IO[Any],
    stderr: IO[Any],
    folder: Path = _CHECKOUT,
    new_session: bool = False,
) -> Fork:
    """Starts a program, the path of a Python script and its arguments; its stdin is empty."""
    asked = {
        "arguments": list(program),
        "environment": dict(environment),
        "folder": str(folder),
        "new_session": new_session,
    }
    reading, writing = os.pipe()
    report = os.fdopen(reading)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        files = [nothing.fileno(), stdout.fileno(), stderr.fileno(), writing]
        with _lock:
            socket.send_fds(_server(), [json.dumps(asked).encode()], files)
    os.close(writing)
    return Fork(program, int(report.readline()), report)


def run_python(
    program: Sequence[str], environment: Mapping[str, str], timeout: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """What a Python program of the checkout wrote, and how it ended; in a fork if it can be one."""
    if can_fork(environment):
        return run_fork(program, environment, timeout)
    return subprocess.run(
        [sys.executable, *program],
        cwd=_CHECKOUT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def run_fork(
    program: Sequence[str], environment: Mapping[str, str], timeout: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """As `subprocess.run` with `capture_output`, in the folder of the checkout."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        fork = start_fork(program, environment, stdout=out, stderr=err)
        try:
            status = fork.wait(timeout)
        except BaseException:
            fork.kill()
            fork.wait()
            raise
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(list(program), status, out.read(), err.read())


@cache
def _server() -> socket.socket:
    """The connection to the process that forks; it ends when this process does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), str(its.fileno())],
            cwd=_CHECKOUT,
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours
