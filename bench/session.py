"""The databases and servers of one benchmark; all stop together at the end."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

import psycopg

from bench import postgres, registry
from bench.clients import Population
from bench.report import progress
from bench.servers import CHECKOUT, PROGRAMS, VAR, WORKERS, Server, free_port, run_python, start

# A larger registry than this is filled anew each time: a copy would take another 1.7 kB a user.
_LARGEST_TEMPLATE = 2_000_000


class Session:
    """`folder` holds logs and filled databases, which later runs use again."""

    def __init__(self, folder: Path, database_server: Server) -> None:
        self.folder = folder
        self.database_server = database_server
        self._copies: list[str] = []
        self._servers = ExitStack()

    def add(self, server: Server) -> Server:
        """The server; it stops with this session."""
        self._servers.callback(server.stop)
        return server

    def start_granian(self, name: str, application: str, **environment: str) -> Server:
        """A peer on granian, the server that adds least to a WSGI application."""
        port = free_port()
        command = [
            *(str(PROGRAMS / "granian"), "--interface", "wsgi", "--no-ws", "--host", "127.0.0.1"),
            *("--port", str(port), "--workers", str(WORKERS), application),
        ]
        database = self.database_server if "DATABASE_URL" in environment else None
        log = self.folder / f"{name}.log"
        return self.add(start(command, port, log, environment=environment, database=database))

    def stop_servers(self) -> None:
        """Stops the servers and drops the databases that they used; PostgreSQL goes on."""
        self._servers.close()
        while self._copies:
            self._drop(self._copies.pop())

    def copy_of_registry(self, population: Population, name: str) -> str:
        """The URL of a database of this name with the registry of this population."""
        if population.taxpayers <= _LARGEST_TEMPLATE:
            return self.copy_of(self.registry(population), name)
        progress(f"filling {name} with {population.taxpayers:,} system users")
        self._create(name, "template0")
        _fill_registry(self._url(name), population)
        return self._measured(name)

    def registry(self, population: Population) -> str:
        """The template of this registry."""
        return self.template(
            f"registry_{population.taxpayers}", partial(_fill_registry, population=population)
        )

    def template(self, name: str, fill: Callable[[str], None], source: str = "template0") -> str:
        """The name of a database that later runs use again: `fill` adds to a copy of `source`."""
        if not self._execute(f"SELECT FROM pg_database WHERE datname = '{name}'"):
            progress(f"filling {name}, which later runs use again")
            self._create(f"{name}_unfinished", source)
            fill(self._url(f"{name}_unfinished"))
            self._execute(f"ALTER DATABASE {name}_unfinished RENAME TO {name}")
        return name

    def copy_of(self, template: str, name: str) -> str:
        """The URL of a copy of the template."""
        self._create(name, template)
        return self._measured(name)

    def _create(self, name: str, template: str) -> None:
        self._drop(name)
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")

    def _measured(self, name: str) -> str:
        """The URL of this database, which lasts until the servers stop."""
        self._copies.append(name)
        # In shared memory, as in a server that has run for a while.
        self._execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm", name)
        self._execute(
            "SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i')"
            " AND relpersistence = 'p' AND relnamespace = 'public'::regnamespace"
            # What each login changes comes last, in case that not everything has room.
            " ORDER BY relname LIKE 'client_usage%'",
            name,
        )
        return self._url(name)

    def sqlite_registry(self, population: Population) -> str:
        """The URL of a new SQLite file with the registry of this population."""
        file = self.folder / "registry.sqlite3"
        for old in self.folder.glob(f"{file.name}*"):
            old.unlink()
        progress(f"filling {file.name}")
        run_python("manage.py", "migrate", "-v0", DATABASE_URL=f"sqlite://{file}")
        registry.fill_sqlite(file, population)
        return f"sqlite://{file}"

    def settle(self) -> None:
        """Does what filling, copying and first logins left behind: no measurement pays for it.

        Without it autovacuum reads these databases while others are measured. And the first change
        of a page after a checkpoint writes the whole page to the log. To measure as in the middle
        between two checkpoints, each page of the table that logins change gets one here: a locked
        row is a changed page, and nothing else.
        """
        for name in self._copies:
            self._execute("VACUUM (ANALYZE)", name)
        self._execute("CHECKPOINT")
        for name in self._copies:
            if self._execute("SELECT FROM pg_tables WHERE tablename = 'client_usage'", name):
                self._execute("SELECT count(*) FROM (SELECT FROM client_usage FOR UPDATE) t", name)

    def _drop(self, name: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _execute(self, sql: str, database: str = "postgres") -> int:
        """How many rows there were."""
        with psycopg.connect(self._url(database), autocommit=True) as connection:
            return connection.execute(sql.encode()).rowcount

    def _url(self, database: str) -> str:
        return postgres.url_of(self.database_server.port, database)


def _fill_registry(url: str, population: Population) -> None:
    run_python("manage.py", "migrate", "-v0", DATABASE_URL=url)
    registry.fill_postgres(url, population)


@contextmanager
def open_session() -> Iterator[Session]:
    """A session with its own PostgreSQL, in `.bench/`. Raises NotStarted."""
    folder = _folder()
    server = postgres.start_postgres(folder / "postgres")
    try:
        session = Session(folder, server)
        try:
            yield session
        finally:
            session.stop_servers()
    finally:
        server.stop()


def _folder() -> Path:
    """A folder for what would be filled now; what an earlier version filled is deleted."""
    sources = [CHECKOUT / "bench" / "clients.py", CHECKOUT / "bench" / "registry.py"]
    for room in ("identity", "taxpayers", "tokens"):
        sources += sorted((CHECKOUT / room).rglob("migrations/*.py"))
    sources += sorted((CHECKOUT / "taxpayers" / "facts" / "epochs").glob("*.py"))  # for 0003_epochs
    version = sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    folder = VAR / f"filled-{version}"
    for outdated in folder.parent.glob("filled-*"):
        if outdated != folder:
            shutil.rmtree(outdated)
    return folder
