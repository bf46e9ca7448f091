"""The database of the tests, the real servers as fixtures, and what most tests need.

`--database` chooses before Django reads its settings, so this file names the settings module itself
and nothing that needs Django's models may be imported at its top.
"""

import itertools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import pytest

from tests import selection, statements
from tests.selection import IS_CI, NO_POSTGRES
from tests.servers import processes
from tests.servers.certificates import MTLS_URL, PROXY
from tests.servers.nginx import free_ports, start_balancer
from tests.servers.postgres import Postgres, start_postgres
from tests.servers.processes import NotAvailable, free_port, new_folder, stopping
from tests.servers.service import (
    CONFIGURATION,
    QUICK,
    TEST_SECRETS,
    Service,
    clean_environment,
    manage,
    service_environment,
    start_service,
)

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import Settings
    from pytest_django.plugin import DjangoDbBlocker

    from tests.introspection.api import Api
    from tests.live.cluster import Cluster
    from tests.support.databases import MigratedSqlite
    from tests.support.erp import Erp

FOLDER = pytest.StashKey[Path]()
POSTGRES = pytest.StashKey[Postgres]()
MIGRATED = pytest.StashKey[Any]()  # MigratedSqlite or MigratedPostgres
_NUMBERS = itertools.count()


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.register(selection)  # its options and hooks
    pluginmanager.register(statements)


# --- The process that runs tests ------------------------------------------------------------------


# Whatever the shell says: every server and every worker would compile every module anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Clients share it: to read the authorities of the world takes much longer than a request.
vars(httpx._transports.default)["create_ssl_context"] = cache(httpx.create_ssl_context)


@pytest.hookimpl(tryfirst=True)  # before pytest-django sets Django up
def pytest_configure(config: pytest.Config) -> None:
    shared = getattr(config, "workerinput", None)  # of a worker of pytest-xdist
    folder = Path(tempfile.mkdtemp(dir=shared["folder"])) if shared else new_folder("tests")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.option.basetemp = config.option.basetemp or folder / "tmp"  # not in /tmp
    signal.signal(signal.SIGTERM, _exit_on_sigterm)  # leave no server behind then, either
    config.stash[FOLDER] = folder
    processes.running = Path(shared["folder"] if shared else folder) / "running"
    if shared:
        config.option.seed = shared["seed"]
    else:
        processes.running.mkdir()
        config.add_cleanup(processes.kill_those_left)
        if config.getoption("dist", "no") != "no":
            return  # workers run the tests, each with its own folder and database
    _configure_django(config, folder)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What all workers must have in common."""
    folder = node.config.stash[FOLDER]
    node.workerinput |= {"seed": node.config.option.seed, "folder": str(folder)}


def _configure_django(config: pytest.Config, var: Path) -> None:
    (var / "static").mkdir()
    environment = {
        **clean_environment(),
        **TEST_SECRETS,
        "VAR_DIR": str(var),
        "ALLOWED_HOSTS": "*",
        "DJANGO_SETTINGS_MODULE": "identity.settings",
        "SERVE": config.option.serve,
    }
    if config.option.database == "postgresql":
        environment["DATABASE_URL"] = _postgres_for_all_tests(config)
    os.environ.clear()
    os.environ.update(environment)

    from django.conf import settings
    from django.core.signals import setting_changed

    setting_changed.connect(_make_login_settings_again)
    # Read now: pytest-django sets Django up as soon as it is configured.
    for database in settings.DATABASES.values():
        options = database["OPTIONS"]
        if "init_command" in options:  # SQLite; no test loses power
            options["init_command"] += " PRAGMA synchronous=OFF;"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick
    # Each test's client reads the middleware anew: it need not list every static file for that.
    settings.WHITENOISE_USE_FINDERS = False


def _make_login_settings_again(**_changed: object) -> None:
    from tokens.login_settings import login_settings

    login_settings.cache_clear()


def _postgres_for_all_tests(config: pytest.Config) -> str:
    """The URL of a new server; empty, and the reason in the stash, if there can be none."""
    try:
        server = config.stash[POSTGRES] = start_postgres()
    except NotAvailable as reason:
        if IS_CI:
            raise
        config.stash[NO_POSTGRES] = str(reason)
        return ""
    config.add_cleanup(server.stop)
    return server.url()


def _exit_on_sigterm(signum: int, frame: object) -> None:
    # Not `pytest.exit`: code that answers whatever happens takes that for a fault of its own.
    raise KeyboardInterrupt("stopped by SIGTERM")


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
    from django.test import TransactionTestCase
    from django.test.utils import setup_databases

    from tests.support.databases import MigratedPostgres, MigratedSqlite

    stash = request.config.stash
    with django_db_blocker.unblock():
        setup_databases(verbosity=0, interactive=False)
        server = stash.get(POSTGRES, None)
        migrated = stash[MIGRATED] = MigratedPostgres(server) if server else MigratedSqlite()
    with pytest.MonkeyPatch.context() as patch:
        # After a test that commits, Django would empty every table and send post_migrate. The copy
        # is much quicker, and also brings back what migrations filled in.
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _case: migrated.restore())
        yield
    migrated.close()
    connections.close_all()


@pytest.fixture(scope="session", autouse=True)
def queries_of_other_databases(django_db_blocker: "DjangoDbBlocker") -> None:
    """Every test may query the database of a service that it has started."""
    from tests.support import command_line

    command_line.queries_allowed = django_db_blocker.unblock


# --- Servers --------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = start_postgres()
    with stopping(server):
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(django_db_setup: None, request: pytest.FixtureRequest) -> "MigratedSqlite":
    return request.config.stash[MIGRATED]  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def migrated_template(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a migrated database: copying it takes a fraction of migrating another."""
    url = postgres.create_database()
    manage(service_environment(tmp_path_factory.mktemp("var"), 0, DATABASE_URL=url), "migrate")
    return url.rpartition("/")[2]


@pytest.fixture
def empty_postgres_url(postgres: Postgres) -> Iterator[str]:
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def postgres_url(postgres: Postgres, migrated_template: str) -> Iterator[str]:
    """A new PostgreSQL database with every migration applied, for this test alone."""
    url = postgres.create_database(migrated_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="module")
def module_database(postgres: Postgres, migrated_template: str) -> Iterator[str]:
    url = postgres.create_database(migrated_template)
    yield url
    postgres.drop_database(url)


@pytest.fixture(scope="session")
def node(
    migrated_sqlite: "MigratedSqlite", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The service on SQLite, one for all tests that need nothing else."""
    with _services(migrated_sqlite, tmp_path_factory.mktemp("node")) as start:
        yield start()


@pytest.fixture(scope="session")
def cluster(
    postgres: Postgres,
    migrated_template: str,
    migrated_sqlite: "MigratedSqlite",
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["Cluster"]:
    """Two login nodes and one for the staff, with quick deadlines; no test may stop them."""
    from tests.live.cluster import Cluster, behind

    folder, ports = tmp_path_factory.mktemp("cluster"), free_ports()
    url = postgres.create_database(migrated_template)
    balancer = start_balancer(ports)
    with stopping(balancer), _services(migrated_sqlite, folder) as start:
        nodes = [
            start(url, **behind(ports) | {"PORT": str(port), "SERVE": serve, "QUICK": "1"})
            for port, serve in ((ports.staff, "staff"), *((p, "login") for p in ports.nodes))
        ]
        yield Cluster(balancer, nodes[1:])
    postgres.drop_database(url)


class StartService(Protocol):
    def __call__(self, database_url: str = "", **settings: str) -> Service: ...


@pytest.fixture
def service(migrated_sqlite: "MigratedSqlite", tmp_path: Path) -> Iterator[StartService]:
    """Starts the real service, and again for a second node: `service(postgres_url)`.

    Without a database URL it is SQLite, the same for all nodes of one test. Further keyword
    arguments are settings in the environment; `QUICK="1"` shortens its deadlines
    (tests/servers/quick_config.py). All are stopped at the end of the test.
    """
    with _services(migrated_sqlite, tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def services(
    migrated_sqlite: "MigratedSqlite", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartService]:
    """As `service`, for all tests of a module; mark those with `processes`."""
    with _services(migrated_sqlite, tmp_path_factory.mktemp("services")) as start:
        yield start


@contextmanager
def _services(migrated: "MigratedSqlite", folder: Path) -> Iterator[StartService]:
    started: list[Service] = []

    def start(database_url: str = "", **settings: str) -> Service:
        given = ({"DATABASE_URL": database_url} if database_url else {}) | settings
        port = int(given.pop("PORT", "0")) or free_port()
        configuration = QUICK if given.pop("QUICK", "") else CONFIGURATION
        environment = service_environment(folder, port, **given)
        if not database_url and not started:
            migrated.write_to(folder / "identity.sqlite3")
        node = start_service(environment, folder / f"service-{len(started)}.log", configuration)
        started.append(node)
        return node

    # Read at the end, not now: nodes are started during the test.
    try:
        yield start
    finally:
        with stopping(*started):
            for node in started:  # pytest shows it after a failure
                sys.stdout.write(f"--- {node.url}\n{node.log}")


@pytest.fixture(autouse=True)
def fresh_process(pytestconfig: pytest.Config) -> None:
    """What a process and its node remember is forgotten, as if each test had its own."""
    from django.conf import settings
    from django.utils import translation

    from tokens.keys import signer
    from tokens.operations import node, sandbox as addresses
    from tokens.status_lists import publication

    # A process cannot open one file of LMDB twice, and the last test's may still be open.
    settings.LOCAL_FACTS_DIR = pytestconfig.stash[FOLDER] / f"local-facts-{next(_NUMBERS)}"
    node.this_node.cache_clear()
    addresses.sandbox_addresses.cache_clear()
    signer.clear_key_ring_cache()
    publication.forget_status_lists()
    translation.deactivate()  # a page in Malay leaves its language to the thread


@pytest.fixture
def erp(db: None) -> "Erp":
    from tests.support.erp import new_erp

    return new_erp()


@pytest.fixture
def takes_certificates(settings: "Settings") -> None:
    """The service is behind one trusted proxy that asks clients for certificates."""
    settings.MTLS_URL, settings.TRUSTED_PROXIES = MTLS_URL, [PROXY]


@pytest.fixture
def intermediary(db: None) -> "Erp":
    from tests.support import make
    from tests.support.erp import new_erp

    return new_erp(taxpayer=make.intermediary().taxpayer)


@pytest.fixture
def api(db: None) -> "Api":
    from tests.introspection.api import new_api

    return new_api()


@pytest.fixture
def blocked(db: None) -> "Erp":
    from datetime import UTC, datetime, timedelta

    from tests.support.erp import new_erp

    return new_erp(blocked_at=datetime.now(UTC) - timedelta(days=1))


# --- Staff, each signed in ------------------------------------------------------------------------


def _staff(role: str | None, name: str) -> Any:
    @pytest.fixture
    def signed_in(db: None) -> "Client":
        from tests.support.staff import staff_client

        return staff_client(role, name)

    return signed_in


viewer = _staff("viewer", "siti")
registrar = _staff("registrar", "nurul")
officer = _staff("security officer", "kumar")
auditor = _staff("auditor", "farid")
boss = _staff(None, "boss")
