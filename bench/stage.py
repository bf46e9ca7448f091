"""Everything that one benchmark has running: started on demand, stopped together at the end."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import databases, servers
from bench.clients import Population
from bench.databases import Databases
from bench.peers import toolkit_registry
from bench.servers import Target
from tests.support.servers import Postgres, stopping


class Stage:
    """A durable PostgreSQL, and servers with databases of their own in it."""

    def __init__(self, folder: Path, postgres: Postgres) -> None:
        self.folder = folder
        self.databases = Databases(postgres)
        self._postgres = postgres
        self._targets = ExitStack()

    def clear(self) -> None:
        """Stops the servers and drops what they used up; PostgreSQL goes on."""
        self._targets.close()
        self.databases.drop_copies()

    @property
    def database_pid(self) -> int:
        return self._postgres.process.pid

    def _kept(self, target: Target) -> Target:
        self._targets.callback(target.stop)
        return target

    def bare_view(self, *, reads_form: bool = False) -> Target:
        """The unit: no database, no signature."""
        application = "reading" if reads_form else "bare"
        return self._kept(
            servers.start_granian(
                application, self.folder, f"bench.peers.{application}:application"
            )
        )

    def toolkit(self, name: str, applications: int, hasher: str) -> Target:
        """django-oauth-toolkit; an empty `hasher` is Django's default."""
        template = self.databases.template(
            f"toolkit_{name}_{applications}",
            lambda url: toolkit_registry.fill(url, applications, hasher),
        )
        url = self.databases.copy(template, f"toolkit_{name}")
        return self._kept(
            servers.start_granian(
                f"toolkit_{name}",
                self.folder,
                "bench.peers.toolkit:application",
                database_pid=self.database_pid,
                environment=toolkit_registry.environment(url, hasher),
            )
        )

    def identity(self, name: str, population: Population, **settings: str) -> Target:
        """This service on PostgreSQL, with a registry of its own."""
        url = self.databases.copy(self.databases.registry(population), name)
        return self.identity_on(url, name, **settings)

    def identity_on(self, url: str, name: str, **settings: str) -> Target:
        """This service on the database at `url`."""
        return self._kept(
            servers.start_identity(name, self.folder, url, self.database_pid, settings=settings)
        )

    def identity_timed(self, population: Population, times: Path) -> Target:
        """This service with a stopwatch at each hop; it writes what it measured into `times`."""
        url = self.databases.copy(self.databases.registry(population), "timed")
        return self._kept(
            servers.start_identity(
                "timed",
                self.folder,
                url,
                self.database_pid,
                module="bench.timed:application",
                settings={"BENCH_HOPS": str(times)},
            )
        )

    def identity_on_sqlite(self, population: Population) -> Target:
        """This service on SQLite, with a registry of its own."""
        var = servers.var_folder("sqlite", self.folder)
        databases.sqlite(self.folder, population, var)
        return self._kept(servers.start_identity("sqlite", self.folder, "", None))


@contextmanager
def stage(options: Mapping[str, str] = databases.OPTIONS) -> Iterator[Stage]:
    """A stage in the folder of the benchmark; nothing of it runs afterwards.

    `options` are those of PostgreSQL.
    """
    folder = databases.bench_folder()
    postgres = databases.start(folder, options)
    with stopping(postgres):
        running = Stage(folder, postgres)
        try:
            yield running
        finally:
            running.clear()
