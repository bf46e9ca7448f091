"""Programs that tests start: each with its own folder and port, stopped by its process id."""

import contextlib
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import httpx

CHECKOUT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0  # on a machine that is busy with other tests
STOP_SECONDS = 25.0  # a little more than the service gives to the requests that it has begun
PORTS = range(20_000, 32_000)  # below those that Linux gives to outgoing connections
Process = subprocess.Popen[bytes]
# A folder with a file for each process that runs, named by its id: what ends this process
# ends those.
running: Path | None = None


class NotAvailable(Exception):
    """A program that a test needs is not on this machine; the message names it."""


class DidNotStart(Exception):
    """A program is here and does not start: always a failure. The message is the end of its log."""


class Server(Protocol):
    def stop(self) -> object: ...


@dataclass
class Program:
    """One that listens on its port, with its own folder, which is deleted when it stops."""

    folder: Path
    port: int
    start_again: Callable[[], Process]
    ends_on: ClassVar[signal.Signals] = signal.SIGTERM

    def __post_init__(self) -> None:
        self.process = self.start_again()

    def kill(self) -> None:
        stop_process(self.process, signal.SIGKILL)

    def restart(self) -> None:
        """On what it has left in its folder."""
        stop_process(self.process, self.ends_on)
        self.process = self.start_again()

    def start(self) -> None:
        """What its supervisor does, if it has ended."""
        if self.process.poll() is not None:
            self.process = self.start_again()

    def stop(self) -> None:
        stop_process(self.process, self.ends_on)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def stopping(*servers: Server) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.stop)
        yield


def start_process(
    command: Sequence[str],
    log: Path,
    ready: Callable[[], bool],
    *,
    cwd: Path = CHECKOUT,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
) -> subprocess.Popen[bytes]:
    """The running program, as soon as `ready()` is true. Raises DidNotStart if it never is."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **as_user(user),
        )
    if running:
        (running / str(process.pid)).touch()
    try:
        _wait_until(ready, process, log)
    except BaseException:
        stop_process(process, signal.SIGKILL)
        raise
    return process


def run_python(
    program: Sequence[str], environment: Mapping[str, str], timeout: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """What a Python program of the checkout wrote, and how it ended; its stdin is empty."""
    command = [sys.executable, *program]
    nothing = subprocess.DEVNULL
    return completed(command, cwd=CHECKOUT, env=environment, stdin=nothing, timeout=timeout)


def slowness() -> float:
    """How much longer than on an idle machine everything takes on this one now; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _wait_until(ready: Callable[[], bool], process: Process, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            state = "did not answer" if process.poll() is None else f"ended ({process.returncode})"
            written = log.read_text(errors="replace")[-4000:]
            raise DidNotStart(f"{process.args!r} {state}:\n{written}")
        time.sleep(0.05)


def stop_process(process: Process, how: signal.Signals) -> None:
    """Ask the process to stop; kill it and whatever it started if it does not."""
    if process.poll() is None:
        process.send_signal(how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    kill_group(process.pid)  # nothing of it is left behind
    process.wait(5)
    if running:
        (running / str(process.pid)).unlink(missing_ok=True)


def kill_group(pid: int) -> None:
    """End a program and what it started: each program leads its own process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def kill_those_left() -> None:
    """End what is still running of a process that was killed itself."""
    for file in running.iterdir() if running else ():
        kill_group(int(file.name))


@contextlib.contextmanager
def folder_of_program(name: str) -> Iterator[Path]:
    """A new folder of a program that is no test; what it started ends with it, also by SIGTERM."""
    global running  # noqa: PLW0603 - one for each process
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    folder = new_folder(name)
    running = folder / "running"
    running.mkdir()
    try:
        yield folder
    finally:
        kill_those_left()
        shutil.rmtree(folder, ignore_errors=True)


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def free_port() -> int:
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.1)  # a queue that accepts no connection gives no answer
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_healthy(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def changed(text: str, *changes: tuple[str, str]) -> str:
    """The configuration with its `changes`, each a pattern that it has and what replaces it."""
    for pattern, replacement in changes:
        text, found = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert found, f"the configuration has no {pattern}"
    return text


def new_folder(name: str, user: str | None = None) -> Path:
    """A new folder in `var/` for this run alone; elsewhere if `user` cannot reach the checkout."""
    parent = CHECKOUT / "var"
    parent.mkdir(mode=0o700, exist_ok=True)
    parent.chmod(0o700)  # as the service leaves it, from the first server of a run on
    if user and not runs(["/bin/sh", "-c", f'cd "{parent}"'], user):
        parent = Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    if user:
        shutil.chown(folder, user)
    return folder


def completed(command: Sequence[str | Path], **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def ran(command: Sequence[str | Path], **options: Any) -> str:
    """What a program wrote. Raises AssertionError, with its errors, if it did not end well."""
    done = completed(command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def program_of(package: str, name: str) -> str:
    """Where this program is, which comes with a package of Debian. Raises NotAvailable."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise NotAvailable(f"no {name} here (Debian: apt install {package})")
    return found


def as_user(name: str | None) -> dict[str, Any]:
    """The arguments of `subprocess` that run a program as that user; none for ourselves."""
    if name is None:
        return {}
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


def runs(command: Sequence[str], user: str | None) -> bool:
    try:
        done = subprocess.run(command, cwd="/", capture_output=True, check=False, **as_user(user))
    except OSError:
        return False
    return done.returncode == 0


@contextlib.contextmanager
def suspended(*pids: int) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
