"""Patroni, etcd and HAProxy: the real programs with the files of `deploy/patroni/`."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.servers import processes
from tests.servers.postgres import postgres_user
from tests.servers.processes import (
    CHECKOUT,
    NotAvailable,
    Process,
    Program,
    as_user,
    children_of,
    completed,
    free_port,
    is_healthy,
    listens,
    new_folder,
    program_of,
    ran,
    start_process,
)

HOST = "127.0.0.1"
# Patroni and its database run with nothing of the developer's shell.
_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}
# Where docs/high-availability.md installs Patroni, and which one it must be.
_PATRONI = Path("/opt/patroni/bin")
_OLDEST = (4, 0)
_POSTGRESQL = Path("/usr/lib/postgresql/15/bin")
_ANSWER_SECONDS = 2.0


def _patroni(name: str) -> str:
    """Where Patroni's program is. Raises NotAvailable where it is missing, or an older one.

    Up to 3.0.2, which Debian 12 has, a leader that was silent took the lead from its successor,
    and so the records of tokens were lost: this drill found it.
    """
    path = _PATRONI / name
    if not path.exists():
        raise NotAvailable(f"no {path} here (docs/high-availability.md has the commands)")
    text = completed([_PATRONI / "patroni", "--version"]).stdout
    if tuple(int(part) for part in text.split()[-1].split(".")[:2]) < _OLDEST:
        raise NotAvailable(f"{text.strip()} is too old: a former leader can take the lead back")
    return str(path)


def _changed(name: str, *changes: tuple[str, str]) -> str:
    text = (CHECKOUT / "deploy" / "patroni" / name).read_text(encoding="utf-8")
    return processes.changed(text, *changes)


def _written(path: Path, text: str) -> str:
    """The file, readable for every user of the machine: its program may run as another one."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return str(path)


class Etcd(Program):
    """It keeps its data when it is killed, until it is stopped."""

    ends_on = signal.SIGKILL


def start_etcd() -> Etcd:
    """One member, with `etcd.env`. Raises NotAvailable where there is no etcd."""
    path = program_of("etcd-server", "etcd")
    folder, port = new_folder("etcd", postgres_user()), free_port()
    text = _changed(
        "etcd.env",
        (r",http://127\.0\.0\.1:2379$", ""),
        (r",db-2=.*", ""),  # one member instead of three
        (r"10\.0\.0\.21:2379", f"{HOST}:{port}"),
        (r"10\.0\.0\.21:2380", f"{HOST}:{free_port()}"),
        (r"/var/lib/etcd/identity", f"{folder}/data"),
    )
    settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))

    def start() -> Process:
        return start_process(
            [path],
            folder / "log",
            lambda: is_healthy(f"http://{HOST}:{port}/health"),
            cwd=folder,
            env={**_ENVIRONMENT, **settings},
            user=postgres_user(),
        )

    return Etcd(folder, port, start)


def start_haproxy(members: Sequence[tuple[int, int]]) -> Program:
    """With `haproxy.cfg`, in front of members with these ports, of PostgreSQL and of Patroni.

    It leads to the leader. Raises NotAvailable where there is no HAProxy.
    """
    path = program_of("haproxy", "haproxy")
    folder, port = new_folder("haproxy"), free_port()
    ways = [
        (rf"10\.0\.0\.2{number}:5432 check port 8008", f"{HOST}:{postgresql} check port {rest}")
        for number, (postgresql, rest) in enumerate(members, start=1)
    ]
    users = [] if os.geteuid() == 0 else [(r"^    (?:user|group) haproxy\n", "")]
    here = (r"bind 127\.0\.0\.1:5433", f"bind {HOST}:{port}")
    file = _written(folder / "haproxy.cfg", _changed("haproxy.cfg", here, *ways, *users))
    command, log = [path, "-db", "-f", file], folder / "log"
    return Program(
        *(folder, port),
        lambda: start_process(command, log, lambda: listens(port), env=_ENVIRONMENT),
    )


@dataclass
class Member(Program):
    """Patroni, with `patroni.yml`, and PostgreSQL of one machine; their data end by `stop`."""

    name: str
    rest_port: int

    @property
    def is_leader(self) -> bool:
        """As HAProxy asks."""
        try:
            url = f"http://{HOST}:{self.rest_port}/primary"
            return httpx.options(url, timeout=_ANSWER_SECONDS).status_code == 200
        except httpx.TransportError:
            return False

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def kill_postgresql(self) -> None:
        _signal_all(self._postgresql(), signal.SIGKILL)

    def kill(self) -> None:
        """As when the power fails: Patroni first, because it would start PostgreSQL again."""
        super().kill()
        self.kill_postgresql()

    def hang(self) -> None:
        """As when the machine stops: nothing of it goes on, and connections stay open."""
        os.kill(self.process.pid, signal.SIGSTOP)
        _signal_all(self._postgresql(), signal.SIGSTOP)

    def let_postgresql_go_on(self) -> None:
        """The end of `hang` for PostgreSQL only: it does not know yet what has happened."""
        _signal_all(self._postgresql(), signal.SIGCONT)

    def go_on(self) -> None:
        self.let_postgresql_go_on()
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        self.kill()
        super().stop()

    def control(self, *arguments: str) -> str:
        return ran(
            [_patroni("patronictl"), "-c", self.folder / "patroni.yml", *arguments],
            cwd=self.folder,
            env={**_ENVIRONMENT, "HOME": str(self.folder)},
            stdin=subprocess.DEVNULL,
            **as_user(postgres_user()),
        )

    def _postgresql(self) -> list[int]:
        """The ids of its processes: the first one, which starts the others, comes first."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            first = int((self.folder / "data/postmaster.pid").read_text().splitlines()[0])
            return [first, *children_of(first)]
        return []


def start_member(name: str, etcd_port: int) -> Member:
    """Raises NotAvailable where there is no Patroni, or no PostgreSQL of Debian's."""
    path = _patroni("patroni")
    program_of("postgresql-15", f"{_POSTGRESQL}/postgres")
    folder, port, rest_port = new_folder("patroni", postgres_user()), free_port(), free_port()
    changes = _changes(name, folder, port, rest_port, etcd_port)
    file = _written(folder / "patroni.yml", _changed("patroni.yml", *changes))

    def start() -> Process:
        return start_process(
            [path, file],
            folder / "log",
            lambda: is_healthy(f"http://{HOST}:{rest_port}/health"),
            cwd=folder,
            env={**_ENVIRONMENT, "HOME": str(folder)},
            user=postgres_user(),
        )

    return Member(folder, port, start, name, rest_port)


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


def _signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
