"""The PostgreSQL of the benchmark: durable, on loopback; filled registries are kept."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier

from bench import registry, sqlite_registry
from bench.clients import Population
from tests.support.servers import (
    CHECKOUT,
    Postgres,
    free_port,
    is_reachable,
    manage,
    postgres_user,
    service_environment,
    start_postgres_in,
)

# An answered login survives a power cut: fsync and synchronous_commit are on. The rest is what a
# server of this size is given: memory for the registries of all who are measured, and no checkpoint
# every few minutes, after which each page is written to the log in full once more.
OPTIONS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "3GB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "15min",
    # The toolkit's server opens one for each of its threads, and all servers are there at once.
    "max_connections": "500",
}

_CONTENT = ("clients", "registry", "sqlite_registry")  # the modules that say what is filled in


def bench_folder() -> Path:
    """Where everything of the benchmark is kept: `BENCH_DIR`, or `var/bench` of the checkout."""
    folder = Path(os.environ.get("BENCH_DIR", "") or CHECKOUT / "var" / "bench")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def start(folder: Path, options: Mapping[str, str] = OPTIONS) -> Postgres:
    """The server on what an earlier run left in `folder`, or on new data."""
    home, user = folder / "postgres", postgres_user()
    if not is_reachable(folder, user):
        home = Path(tempfile.gettempdir()) / f"postgres-{_short_hash(str(folder).encode())}"
    home.mkdir(exist_ok=True)
    if user:
        shutil.chown(home, user)
    return start_postgres_in(home, options, kept=True)


class Databases:
    """Databases of one benchmark: templates that are kept, and copies that are used up."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._copies: list[str] = []

    def registry(self, population: Population) -> str:
        """The template with this population."""
        name = f"registry_{population.taxpayers}_{_fingerprint()}"
        self._drop_outdated(f"registry_{population.taxpayers}_", name)
        return self.template(name, lambda url: _fill_registry(url, population))

    def template(self, name: str, fill: Callable[[str], None]) -> str:
        """The name of a database that `fill` filled: now, if no earlier run did."""
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
            if found.fetchone():
                return name
        print(f"filling the database {name}; kept for the next run", flush=True)
        unfinished = f"{name}_unfinished"
        self._drop(unfinished)
        self._server.execute(f'CREATE DATABASE "{unfinished}" TEMPLATE template0')
        fill(self._server.url(unfinished))
        self._server.execute(f'ALTER DATABASE "{unfinished}" RENAME TO "{name}"')
        return name

    def _drop_outdated(self, prefix: str, current: str) -> None:
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            rows = connection.execute(
                "SELECT datname FROM pg_database WHERE starts_with(datname, %s) AND datname <> %s",
                [prefix, current],
            ).fetchall()
        for (name,) in rows:
            self._drop(name)

    def copy(self, template: str, purpose: str) -> str:
        """The URL of a fresh copy of a template, dropped by `drop_copies`."""
        name = f"{purpose}_copy"
        self._drop(name)
        self._server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        self._copies.append(name)
        _warm(self._server.url(name))
        return self._server.url(name)

    def drop_copies(self) -> None:
        while self._copies:
            self._drop(self._copies.pop())

    def settle(self) -> None:
        """Writes out what filling and copying left, so that no measurement pays for it.

        Then it is as in the middle of the time between two checkpoints: each page of the table that
        logins change has been in the log in full, which the first change after a checkpoint costs.
        """
        self._server.execute("CHECKPOINT")
        for name in self._copies:
            _lock_rows(self._server.url(name), "client_usage")

    def _drop(self, name: str) -> None:
        self._server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _fill_registry(url: str, population: Population) -> None:
    with tempfile.TemporaryDirectory() as var:
        environment = service_environment(Path(var), free_port(), DATABASE_URL=url)
        manage(environment, "migrate", "--verbosity=0")
    registry.fill(url, population)


def _warm(url: str) -> None:
    """Reads the database into shared memory, where it is in a server that runs for a while."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        connection.execute(
            "SELECT pg_prewarm(oid) FROM pg_class"
            " WHERE relkind IN ('r', 'i') AND relpersistence = 'p' AND relnamespace ="
            " 'public'::regnamespace"
        )


def _lock_rows(url: str, table: str) -> None:
    # A row that was locked is a page that was changed, and nothing else.
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass(%s)", [table]).fetchone() != (None,):
            connection.execute(
                SQL("SELECT count(*) FROM (SELECT FROM {} FOR UPDATE) AS locked").format(
                    Identifier(table)
                )
            )


def sqlite(folder: Path, population: Population, var: Path) -> None:
    """Puts an SQLite database with this population into `var`, filled now or by an earlier run."""
    name = "identity.sqlite3"
    kept = folder / f"registry_{population.taxpayers}_{_fingerprint()}.sqlite3"
    if not kept.exists():
        for outdated in folder.glob(f"registry_{population.taxpayers}_*.sqlite3"):
            outdated.unlink()
        print(f"filling {kept.name}; kept for the next run", flush=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            environment = service_environment(Path(temporary), free_port())
            manage(environment, "migrate", "--verbosity=0")
            sqlite_registry.fill(Path(temporary) / name, population)
            (Path(temporary) / name).rename(kept)
    for old in var.glob(f"{name}*"):
        old.unlink()
    shutil.copyfile(kept, var / name)


def _fingerprint() -> str:
    """Changes whenever the schema or the content of a filled registry would be another."""
    sources = [CHECKOUT / "bench" / f"{name}.py" for name in _CONTENT]
    for app in ("taxpayers", "tokens"):
        sources += sorted((CHECKOUT / app / "migrations").glob("*.py"))
    return _short_hash(b"".join(source.read_bytes() for source in sources))


def _short_hash(content: bytes) -> str:
    return sha256(content).hexdigest()[:12]
