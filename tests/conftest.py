"""Which tests run, on which database and in which order, and the real servers as fixtures.

The order is random: no test may need what another one left. A run names its seed, and `--seed`
repeats it. `--database` chooses before Django reads its settings, so this file names the settings
module itself and nothing that needs Django's models may be imported at its top.
"""

import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

import pytest

from tests.support import servers

if TYPE_CHECKING:
    from pytest_django.plugin import DjangoDbBlocker

    from tests.support.databases import MigratedSqlite
    from tests.support.erp import Erp

IS_CI = bool(os.environ.get("CI"))
POSTGRES = pytest.StashKey[servers.Postgres]()
NO_POSTGRES = pytest.StashKey[str]()
MIGRATED = pytest.StashKey[Any]()  # MigratedSqlite or MigratedPostgres
BLOCKER = pytest.StashKey["DjangoDbBlocker"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database",
        choices=["sqlite", "postgresql"],
        default="sqlite",
        help="the database of the tests; a real PostgreSQL is started for them (sqlite)",
    )
    parser.addoption("--seed", type=int, help="repeat the random order of an earlier run")


# --- The process that runs tests ------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)  # before pytest-django sets Django up
def pytest_configure(config: pytest.Config) -> None:
    folder = servers.new_folder("tests")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.option.basetemp = config.option.basetemp or folder / "tmp"  # not in /tmp
    signal.signal(signal.SIGTERM, _exit_on_sigterm)  # leave no server behind then, either
    if hasattr(config, "workerinput"):
        config.option.seed = config.workerinput["seed"]
    elif config.option.seed is None:
        config.option.seed = random.randrange(1_000_000)  # noqa: S311 - of an order
    if _is_controller(config):
        return  # its workers run the tests, each with a folder and a database of its own
    environment = {
        **servers.clean_environment(),
        **servers.TEST_SECRETS,
        "VAR_DIR": str(folder),
        "ALLOWED_HOSTS": "*",
        "DJANGO_SETTINGS_MODULE": "identity.settings",
    }
    if config.option.database == "postgresql":
        environment["DATABASE_URL"] = _postgres_for_all_tests(config)
    (folder / "static").mkdir()
    os.environ.clear()
    os.environ.update(environment)

    from django.conf import settings

    # Read now: pytest-django sets Django up as soon as it is configured.
    for database in settings.DATABASES.values():
        options = database["OPTIONS"]
        if "init_command" in options:  # SQLite; no test loses power
            options["init_command"] += " PRAGMA synchronous=OFF;"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick
    # Each test's client reads the middleware anew: it need not list every static file for that.
    settings.WHITENOISE_USE_FINDERS = False


def _is_controller(config: pytest.Config) -> bool:
    """Whether this process only gives tests to others (pytest-xdist)."""
    return config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """All workers of pytest-xdist must have the same order."""
    node.workerinput["seed"] = node.config.option.seed


def _postgres_for_all_tests(config: pytest.Config) -> str:
    """The URL of a new server; empty, and the reason in the stash, if there can be none."""
    try:
        server = config.stash[POSTGRES] = servers.start_postgres()
    except servers.NotAvailable as reason:
        if IS_CI:
            raise
        config.stash[NO_POSTGRES] = str(reason)
        return ""
    config.add_cleanup(server.stop)
    return server.url()


def _exit_on_sigterm(signum: int, frame: object) -> None:
    pytest.exit("stopped by SIGTERM", returncode=128 + signum)


# --- Which tests run, and in which order ----------------------------------------------------------

# Whoever uses one of these, also by way of another fixture, meets a program besides this one.
_PROGRAMS = {"postgres", "service", "node", "whole_office", "browser"}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    for item in items:
        if _PROGRAMS & set(getattr(item, "fixturenames", ())):
            item.add_marker("processes")
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    chosen = [item for item in items if _runs_on(config.option.database, item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
    if why := config.stash.get(NO_POSTGRES, ""):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=why))
    order = {item: _place(item, config.option.seed) for item in items}
    try:
        return (yield)
    finally:
        items.sort(key=lambda item: order[item])  # after pytest-django's own, which hides much


def _runs_on(database: str, item: pytest.Item) -> bool:
    """Each test once; those of queries on both databases."""
    if database == "sqlite":
        return item.get_closest_marker("postgresql") is None
    # A test that starts its servers chooses their database itself.
    return _uses_database(item) and item.get_closest_marker("processes") is None


def _uses_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return bool(item.get_closest_marker("django_db") or {"db", "transactional_db"} & fixtures)


def _commits(item: pytest.Item) -> bool:
    """Whether what the test writes stays: no transaction is around it."""
    marker = item.get_closest_marker("django_db")
    fixtures = getattr(item, "fixturenames", ())
    return bool(marker and marker.kwargs.get("transaction")) or "transactional_db" in fixtures


def _group(item: pytest.Item) -> str:
    """Tests that run one after the other in one process, because they share a server."""
    fixtures = getattr(item, "fixturenames", ())
    for shared in ("whole_office", "node"):
        if shared in fixtures:
            return shared
    return item.nodeid.partition("::")[0]


def _place(item: pytest.Item, seed: int) -> tuple[bool, int, int]:
    """Where it comes in the random order; the long tests first, so that no worker is idle."""
    is_short = item.get_closest_marker("processes") is None
    return (
        is_short,
        crc32(f"{seed} {_group(item)}".encode()),
        crc32(f"{seed} {item.nodeid}".encode()),
    )


# --- What the run says ----------------------------------------------------------------------------


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {config.option.database}; random order: --seed={config.option.seed}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """A program that a test needs is missing: a developer is told so, CI fails."""
    try:
        return (yield)
    except servers.NotAvailable as reason:
        if IS_CI:
            raise
        raise pytest.skip.Exception(str(reason), _use_item_location=True) from None


def _skipped(config: pytest.Config) -> Counter[str]:
    """How often each reason skipped a test."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return Counter(report.longrepr[2] for report in reports)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for reason, count in _skipped(config).items():
        line = f"WARNING: {count} tests did not run. {reason.splitlines()[0]}"
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if IS_CI and exitstatus == 0 and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED  # a green CI has run every test


# --- The database of the tests --------------------------------------------------------------------


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest,
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: "DjangoDbBlocker",
) -> Iterator[None]:
    """The test database with every migration applied, and a copy of it; both end with the run."""
    from django.db import connections
    from django.test.utils import setup_databases

    from tests.support.databases import MigratedPostgres, MigratedSqlite

    stash = request.config.stash
    stash[BLOCKER] = django_db_blocker
    with django_db_blocker.unblock():
        setup_databases(verbosity=0, interactive=False)
        server = stash.get(POSTGRES, None)
        migrated = stash[MIGRATED] = MigratedPostgres(server) if server else MigratedSqlite()
    yield
    migrated.close()
    connections.close_all()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Django empties every table after a test that commits; others need what migrations made."""
    try:
        return (yield)
    finally:
        stash = item.config.stash
        if _commits(item) and nextitem is not None and MIGRATED in stash:
            with stash[BLOCKER].unblock():
                stash[MIGRATED].restore()


# --- Servers --------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres() -> Iterator[servers.Postgres]:
    """The PostgreSQL of this process."""
    server = servers.start_postgres()
    with servers.stopping(server):
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(django_db_setup: None, request: pytest.FixtureRequest) -> "MigratedSqlite":
    """The migrated database of SQLite, to be copied."""
    return request.config.stash[MIGRATED]  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def migrated_template(postgres: servers.Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a migrated database: copying it takes a fraction of migrating another."""
    url = postgres.create_database()
    var = tmp_path_factory.mktemp("template")
    servers.manage(servers.service_environment(var, 0, DATABASE_URL=url), "migrate", "-v0")
    return url.rpartition("/")[2]


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


@pytest.fixture(scope="session")
def node(
    migrated_sqlite: "MigratedSqlite", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[servers.Service]:
    """The service on SQLite, one for all tests that need nothing else."""
    folder = tmp_path_factory.mktemp("node")
    environment = servers.service_environment(folder, servers.free_port())
    migrated_sqlite.write_to(folder / "identity.sqlite3")
    started = servers.start_service(environment, folder / "service.log")
    with servers.stopping(started):
        yield started


class StartService(Protocol):
    """Starts a service process; see the fixture `service`."""

    def __call__(self, database_url: str = "", **settings: str) -> servers.Service: ...


@pytest.fixture
def service(migrated_sqlite: "MigratedSqlite", tmp_path: Path) -> Iterator[StartService]:
    """Starts the real service, and again for a second node: `service(postgres_url)`.

    Without a database URL it is SQLite, the same for all nodes of one test. Further keyword
    arguments are settings in the environment. All are stopped at the end of the test.
    """
    started: list[servers.Service] = []

    def start(database_url: str = "", **settings: str) -> servers.Service:
        given = ({"DATABASE_URL": database_url} if database_url else {}) | settings
        port = int(given.pop("PORT", "0")) or servers.free_port()
        environment = servers.service_environment(tmp_path, port, **given)
        if not database_url and not started:
            migrated_sqlite.write_to(tmp_path / "identity.sqlite3")
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
    """What a process remembers is forgotten, as if each test had its own."""
    from django.utils import translation

    from tokens.endpoint import throttle
    from tokens.keys import signer

    throttle.forget_denials()
    signer.clear_key_ring_cache()
    translation.deactivate()  # a page in Malay leaves its language to the thread


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
