"""Which database the tests run on, and the real servers as fixtures.

`--database` chooses before Django reads its settings, so this file names the settings module itself
and nothing that needs Django's models may be imported at its top.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.support import servers

if TYPE_CHECKING:
    from tests.support.erp import Erp

IS_CI = bool(os.environ.get("CI"))


class Session:
    """The servers of this run, each started when first asked for, and why one is missing."""

    def __init__(self) -> None:
        self.folder = servers.new_folder("tests")
        self.missing: dict[str, str] = {}
        self._running: dict[str, Any] = {}

    def server(self, name: str, start: Callable[[], Any]) -> Any:
        """The server; None, and the reason kept for the summary, if it cannot be had here."""
        if name not in self._running and name not in self.missing:
            try:
                self._running[name] = start()
            except servers.NotAvailable as reason:
                self.missing[name] = str(reason)
        return self._running.get(name)

    def postgres(self) -> servers.Postgres | None:
        return self.server("PostgreSQL", servers.start_postgres)  # type: ignore[no-any-return]

    def valkey(self) -> servers.Valkey | None:
        return self.server("Valkey", servers.start_valkey)  # type: ignore[no-any-return]

    def stop(self) -> None:
        try:
            with servers.stopping(*self._running.values()):
                self._running = {}
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


SESSION = pytest.StashKey[Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=["sqlite", "postgresql"],
        default="sqlite",
        help="the database of the tests; a real PostgreSQL is started for them (sqlite)",
    )


@pytest.hookimpl(tryfirst=True)  # before pytest-django sets Django up
def pytest_configure(config: pytest.Config) -> None:
    session = config.stash[SESSION] = Session()
    config.add_cleanup(session.stop)
    config.option.basetemp = config.option.basetemp or session.folder / "tmp"  # not in /tmp
    signal.signal(signal.SIGTERM, _exit_on_sigterm)  # leave no server behind then, either
    environment = {
        **servers.clean_environment(),
        **servers.TEST_SECRETS,
        "VAR_DIR": str(session.folder),
        "ALLOWED_HOSTS": "*",
        "DJANGO_SETTINGS_MODULE": "identity.settings",
    }
    if config.getoption("--database") == "postgresql" and (server := session.postgres()):
        environment["DATABASE_URL"] = server.url()
    (session.folder / "static").mkdir()
    os.environ.clear()
    os.environ.update(environment)

    from django.conf import settings

    _ = settings.DATABASES  # read now: pytest-django sets Django up as soon as it is configured


def _exit_on_sigterm(signum: int, frame: object) -> None:
    pytest.exit("stopped by SIGTERM", returncode=128 + signum)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"database: {config.getoption('--database')}", *_warnings(config)]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for warning in _warnings(config):
        terminalreporter.write_line(warning, yellow=True, bold=True)


def _warnings(config: pytest.Config) -> list[str]:
    missing = config.stash[SESSION].missing
    return [f"WARNING: tests skipped, no {name} here: {why}" for name, why in missing.items()]


# Fixtures of running services, and of commands in a process and on a database of their own.
_LIVE = {"service", "node", "stage", "cluster", "own_process", "office"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--database") != "postgresql":
        return
    # Tests of a live service choose its database themselves: once is enough.
    live = [item for item in items if _LIVE & set(getattr(item, "fixturenames", ()))]
    config.hook.pytest_deselected(items=live)
    items[:] = [item for item in items if item not in live]
    if why := config.stash[SESSION].missing.get("PostgreSQL"):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"no PostgreSQL: {why.splitlines()[0]}"))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # A skipped server is a warning for a developer; a green CI must have used them all.
    if IS_CI and exitstatus == 0 and session.config.stash[SESSION].missing:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# --- Fixtures -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> servers.Postgres:
    """The PostgreSQL of this run."""
    server = request.config.stash[SESSION].postgres()
    return server or pytest.skip("no PostgreSQL here")


@pytest.fixture(scope="session")
def migrated_template(postgres: servers.Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a migrated database: copying it takes a fraction of migrating another."""
    url = postgres.create_database()
    var = tmp_path_factory.mktemp("template")
    servers.manage(servers.service_environment(var, 0, DATABASE_URL=url), "migrate", "-v0")
    return url.rpartition("/")[2]


@pytest.fixture(scope="session")
def own_process() -> None:
    """Asked for by tests of `manage.py` in a process of its own: it chooses the database itself."""


@pytest.fixture
def empty_postgres_url(postgres: servers.Postgres) -> Iterator[str]:
    """A new PostgreSQL database without any table, for this test alone."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def postgres_url(postgres: servers.Postgres, migrated_template: str) -> Iterator[str]:
    """A new PostgreSQL database with every migration applied, for this test alone."""
    url = postgres.create_database(migrated_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def valkey_url(request: pytest.FixtureRequest) -> str:
    """An empty Valkey."""
    server = request.config.stash[SESSION].valkey()
    if server is None:
        pytest.skip("no Valkey here")
    server.flush()
    return server.url


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Service]:
    """The service on SQLite, one for all tests of a file."""
    folder = tmp_path_factory.mktemp("node")
    environment = servers.service_environment(folder, servers.free_port())
    servers.manage(environment, "migrate", "-v0")
    started = servers.start_service(environment, folder / "service.log")
    with servers.stopping(started):
        yield started


class StartService(Protocol):
    """Starts a service process; see the fixture `service`."""

    def __call__(
        self, database_url: str = "", redis_url: str = "", **settings: str
    ) -> servers.Service: ...


@pytest.fixture
def service(tmp_path: Path) -> Iterator[StartService]:
    """Starts the real service, and again for a second node: `service(postgres_url, valkey_url)`.

    Without a database URL it is SQLite, the same for all nodes of one test. Further keyword
    arguments are settings in the environment. All are stopped at the end of the test.
    """
    started: list[servers.Service] = []

    def start(database_url: str = "", redis_url: str = "", **settings: str) -> servers.Service:
        urls = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        given = {name: url for name, url in urls.items() if url} | settings
        port = int(given.pop("PORT", "0")) or servers.free_port()
        environment = servers.service_environment(tmp_path, port, **given)
        if not database_url and not started:
            servers.manage(environment, "migrate", "-v0")
        node = servers.start_service(environment, tmp_path / f"service-{len(started)}.log")
        started.append(node)
        return node

    # Read at the end, not now: nodes are started during the test.
    try:
        yield start
    finally:
        with servers.stopping(*started):
            for node in started:  # pytest shows it after a failure
                sys.stdout.write(f"--- {node.url}\n{node.log}")


@pytest.fixture(autouse=True)
def fresh_process() -> None:
    """What a process remembers is forgotten, as if each test were a process of its own."""
    from tokens.endpoint import recording as audit
    from tokens.keys import signer as signing

    audit.forget_denials()
    signing.clear_key_ring_cache()


@pytest.fixture
def erp(db: None) -> "Erp":
    """An ERP system of a taxpayer."""
    from tests.support.erp import new_erp

    return new_erp()


@pytest.fixture
def intermediary(db: None) -> "Erp":
    """An ERP system of an active intermediary."""
    from tests.support.erp import new_erp
    from tests.support.factories import IntermediaryFactory

    return new_erp(taxpayer=IntermediaryFactory.create().taxpayer)


@pytest.fixture
def blocked(db: None) -> "Erp":
    """An ERP system that was blocked yesterday."""
    from datetime import UTC, datetime, timedelta

    from tests.support.erp import new_erp

    yesterday = datetime.now(UTC) - timedelta(days=1)
    return new_erp(blocked_at=yesterday, blocked_by="officer", blocked_reason="abuse")
