"""A member of the database: a real Patroni with `deploy/patroni/patroni.yml`, its PostgreSQL."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.servers.patroni.files import ENVIRONMENT, HOST, changed, patroni, written
from tests.servers.postgres import postgres_user
from tests.servers.processes import (
    NotAvailable,
    as_user,
    children_of,
    free_port,
    new_folder,
    start_process,
    stop_process,
)

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
_ANSWER_SECONDS = 2.0


@dataclass
class Member:
    """Patroni and PostgreSQL of one machine; their data are deleted by `stop`."""

    name: str
    folder: Path
    port: int
    rest_port: int
    process: subprocess.Popen[bytes]
    start_again: Callable[[], subprocess.Popen[bytes]]

    @property
    def configuration(self) -> Path:
        return self.folder / "patroni.yml"

    @property
    def is_leader(self) -> bool:
        """As HAProxy asks."""
        return self._status("/primary") == 200

    def _status(self, path: str) -> int:
        try:
            url = f"http://{HOST}:{self.rest_port}{path}"
            return httpx.options(url, timeout=_ANSWER_SECONDS).status_code
        except httpx.TransportError:
            return 0

    def url(self, database: str) -> str:
        """For the superuser, by the socket."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def kill_postgresql(self) -> None:
        _signal_all(self._postgresql(), signal.SIGKILL)

    def kill(self) -> None:
        """As when the power fails: Patroni first, because it would start PostgreSQL again."""
        stop_process(self.process, signal.SIGKILL)
        self.kill_postgresql()

    def hang(self) -> None:
        """As when the machine stops: nothing of it goes on, and connections stay open."""
        os.kill(self.process.pid, signal.SIGSTOP)
        _signal_all(self._postgresql(), signal.SIGSTOP)

    def let_postgresql_go_on(self) -> None:
        """The end of `hang` for PostgreSQL alone: nobody has told it yet what has happened."""
        _signal_all(self._postgresql(), signal.SIGCONT)

    def go_on(self) -> None:
        self.let_postgresql_go_on()
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)

    def start(self) -> None:
        """What the supervisor of Patroni does, if it has ended."""
        if self.process.poll() is not None:
            self.process = self.start_again()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, *arguments: str) -> str:
        """The output of `patronictl`. Raises RuntimeError with its error output."""
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [patroni("patronictl"), "-c", str(self.configuration), *arguments],
            cwd=self.folder,
            env={**ENVIRONMENT, "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **as_user(postgres_user()),
        )
        if done.returncode:
            raise RuntimeError(f"patronictl: {done.stdout}{done.stderr}")
        return done.stdout

    def _postgresql(self) -> list[int]:
        """The ids of its processes: the first one, which starts the others, comes first."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            first = int((self.folder / "data/postmaster.pid").read_text().splitlines()[0])
            return [first, *children_of(first)]
        return []


def start_member(name: str, etcd_port: int) -> Member:
    """Raises NotAvailable where there is no Patroni, or no PostgreSQL of Debian's."""
    path = patroni("patroni")
    if not PROGRAMS.is_dir():
        raise NotAvailable(
            "no PostgreSQL 15 of the system here (Debian: apt install postgresql-15)"
        )
    folder, port, rest_port = new_folder("patroni", postgres_user()), free_port(), free_port()
    changes = _changes(name, folder, port, rest_port, etcd_port)
    configuration = written(folder / "patroni.yml", changed("patroni.yml", *changes))

    def start() -> subprocess.Popen[bytes]:
        return start_process(
            [path, str(configuration)],
            folder / "log",
            lambda: _is_running(rest_port),
            cwd=folder,
            env={**ENVIRONMENT, "HOME": str(folder)},
            user=postgres_user(),
        )

    return Member(name, folder, port, rest_port, start(), start)


def _changes(
    name: str, folder: Path, port: int, rest_port: int, etcd_port: int
) -> Iterator[tuple[str, str]]:
    yield r"^name: db-1\b", f"name: {name}"
    yield r"\[10\.0\.0\.21:2379, .*\]", f"['{HOST}:{etcd_port}']"
    yield r"10\.0\.0\.21:8008", f"{HOST}:{rest_port}"
    yield r"10\.0\.0\.21:5432", f"{HOST}:{port}"
    yield r"/var/lib/postgresql/15/identity", f"{folder}/data"
    yield r"/var/lib/postgresql/\.pgpass", f"{folder}/.pgpass"
    yield r"/var/run/postgresql", str(folder)
    # On the loopback interface, without certificates; and no test may reset the machine.
    yield r"^ *ssl(?:_\w+)?: .*\n", ""
    yield r"- hostssl (.*) 10\.0\.0\.0/\d+", rf"- host \1 {HOST}/32"
    yield r"local all postgres peer", "local all postgres trust"
    yield r"mode: automatic", 'mode: "off"'


def _is_running(rest_port: int) -> bool:
    try:
        answer = httpx.get(f"http://{HOST}:{rest_port}/health", timeout=_ANSWER_SECONDS)
    except httpx.TransportError:
        return False
    return answer.status_code == 200


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
