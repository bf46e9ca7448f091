"""Starts and stops server processes, each on a free port of the loopback interface."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

CHECKOUT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent
# Not in var/, which only its owner may enter: PostgreSQL refuses to run as root, so root's bench
# runs it as another user.
VAR = CHECKOUT / ".bench"
WORKERS = 2
ISSUER = "https://127.0.0.1"
# Nothing else: a setting in the developer's shell must not change what is measured.
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "SECRET_KEY": "only-for-bench-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789",
    "KEY_ENCRYPTION_KEYS": "only-for-bench-0123456789-abcdefghijklmnopqrstuvwxyz",
    "ALLOWED_HOSTS": "127.0.0.1",
    "AUTH_URL": ISSUER,
    "ENVIRONMENT": "test",
}
_START_SECONDS, _STOP_SECONDS = 30.0, 25.0


class NotStarted(Exception):
    """A server did not start; the message says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and the PostgreSQL that works for it, if there is one."""

    port: int
    process: subprocess.Popen[bytes]
    database: "Server | None" = None
    stop_signal: signal.Signals = signal.SIGTERM

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        """Asks it to stop, then ends what is left of its processes. Safe to repeat."""
        if self.process.returncode is not None:
            return
        self.process.send_signal(self.stop_signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(5)


def is_answering(port: int, path: str = "/", status: int | None = None) -> bool:
    """Whether the server answers at the path, with this status if one is given."""
    try:
        response = httpx.get(f"http://127.0.0.1:{port}{path}", timeout=2)
    except httpx.TransportError:
        return False
    return status in (None, response.status_code)


def start(
    command: Sequence[str],
    port: int,
    log: Path,
    is_ready: Callable[[int], bool] = is_answering,
    *,
    environment: Mapping[str, str],
    database: Server | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
    **options: Any,
) -> Server:
    """Returns when `is_ready(port)`. `options` are those of Popen. Raises NotStarted."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**_ENVIRONMENT, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **{"cwd": CHECKOUT, **options},
        )
    server = Server(port, process, database, stop_signal)
    deadline = time.monotonic() + _START_SECONDS
    try:
        while not is_ready(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotStarted(f"{command[0]}:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.05)
    except BaseException:
        server.stop()
        raise
    return server


def run_python(
    *arguments: str,
    program: Path = PROGRAMS / "python",
    folder: Path = CHECKOUT,
    **environment: str,
) -> str:
    """The output of `python ARGUMENTS`; its errors are shown. Raises CalledProcessError."""
    return subprocess.run(
        [str(program), *arguments],
        cwd=folder,
        env={**_ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def free_port() -> int:
    """A port of the loopback interface where no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
