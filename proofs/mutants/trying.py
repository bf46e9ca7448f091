"""Runs tests against a mutant in a fork of a process that has imported the libraries.

The fork imports the mutant in place of the module; no file changes. A first run, without a mutant,
finds out which tests call which functions: only those meet a mutant of a function, the quickest
first. Other mutants, and those of functions that are called at an import or by a fixture of the
session, meet all tests.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from proofs.mutants.making import Mutant
from tests.servers.postgres import Postgres

# Imported once, before the first test: none of them needs Django's settings.
_LIBRARIES = (
    *("hypothesis", "factory", "httpx", "requests", "authlib", "joserfc.jwk", "python_calamine"),
    *("django.test", "django.db.models", "django.db.backends.sqlite3.base", "django.views.debug"),
    *("django.core.management", "django.core.mail", "django.template.loader"),
    *("cryptography.fernet", "jwt", "lmdb", "msgspec", "oauthlib.oauth2", "prometheus_client"),
    *("psycopg", "uuid_utils.compat"),
)
_ARGUMENTS = (
    *("-q", "-m", "not (processes or slow)", "-p", "no:cacheprovider"),
    # pytest would rewrite the assertions of its plug-ins; they were imported before.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    # It collects garbage at the end, a fifth of the time of a run that fails at once.
    *("-p", "no:unraisableexception", "-p", "no:faker"),
)
_MAX_BYTES = 4 << 30  # that are written to: an endless loop may fill a list
_TIME_IS_OVER = 99
_MIGRATED = "migrated"  # the test database as the first run leaves it to the others
_AT_START = ""  # before the first test, or in a fixture of the session


@dataclass(frozen=True, slots=True)
class Where:
    """What a run needs to know of its place: `folder` is for what it writes."""

    root: Path
    folder: Path
    postgres: Postgres | None = None

    @property
    def output(self) -> Path:
        return self.folder / "output.txt"


@dataclass(slots=True)
class Known:
    """What the run without a mutant has found: for each test its seconds and what it calls."""

    seconds: dict[str, float] = field(default_factory=dict)
    calls: dict[str, list[str]] = field(default_factory=dict)

    def tests_for(self, module: str, function: str) -> list[str]:
        """In the order in which they meet a mutant of it; `function` is empty for the module."""
        wanted = f"{module}:{function}"
        near = [test for test in self.seconds if _touches(self.calls[test], wanted)]
        near.sort(key=self.seconds.__getitem__)
        if function and near and wanted not in self.calls[_AT_START]:
            return near
        others = sorted(self.seconds.keys() - set(near), key=self.seconds.__getitem__)
        return [*near, *others]


def _touches(calls: Sequence[str], wanted: str) -> bool:
    return wanted in calls or (
        wanted.endswith(":") and any(call.startswith(wanted) for call in calls)
    )


def prepare() -> None:
    """Imports what each run needs, once for all of them."""
    sys.dont_write_bytecode = False  # what is not a mutant is compiled once
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # what is here already is no garbage of a run


def learn(where: Where, modules: Sequence[str], arguments: Sequence[str]) -> Known | None:
    """All tests of these arguments of pytest, without a mutant; None if they do not pass."""
    found = where.folder / "calls.json"
    found.unlink(missing_ok=True)

    def run() -> int:
        files = {str(where.root / module): module for module in modules}
        return _run_pytest(where, arguments, _Recorder(found, files), is_migrated=False)

    if os.waitpid(start_fork(run, where.output), 0)[1] or not found.exists():
        return None
    return Known(**json.loads(found.read_text()))


def start_mutant(
    where: Where, known: Known, mutant: Mutant, arguments: Sequence[str], tests: Sequence[str]
) -> int:
    """The id of a process whose status is 0 if these tests do not notice the mutant."""
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    seconds = sum(known.seconds[test] for test in tests)
    is_migrated = not any(call.startswith(f"{mutant.module}:") for call in known.calls[_AT_START])

    def run() -> int:
        _limit(10 + 4 * round(seconds))
        _import_instead(where.root / mutant.module, mutant.source)
        chosen = [*arguments, "-x", "--tb=no", *files]
        return _run_pytest(where, chosen, _Chosen(tests), is_migrated=is_migrated)

    return start_fork(run, Path(os.devnull))


def start_fork(run: Callable[[], int], output: Path) -> int:
    """The id of a process that ends with what `run` returns, and leads its own group."""
    child = os.fork()
    if child:
        return child
    status = 3  # as pytest's INTERNAL_ERROR
    try:
        os.setpgid(0, 0)
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        status = run()
    except pytest.exit.Exception as stopped:
        status = stopped.returncode or status
    except BaseException:  # noqa: BLE001 - whatever it is, it ends this process
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _limit(cpu_seconds: int) -> None:
    signal.signal(signal.SIGXCPU, _stop)
    signal.signal(signal.SIGALRM, _stop)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
    # Not the whole address space: each file of local facts takes a GiB of that and no memory.
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
    signal.alarm(60 + 8 * cpu_seconds)  # the machine may be busy


def _stop(signum: int, frame: object) -> None:
    """The tests clean up after themselves; what does not stop is killed a little later."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(10)
    pytest.exit("the time is over", returncode=_TIME_IS_OVER)


def _run_pytest(
    where: Where, arguments: Sequence[str], plugin: object, *, is_migrated: bool
) -> int:
    os.chdir(where.root)
    server = where.postgres
    if (where.root / "tests" / "conftest.py").exists():
        from tests import conftest

        if server is not None:
            server.stop = lambda: None  # type: ignore[method-assign]  # not by this process
            setattr(conftest, "start_postgres", lambda: server)  # noqa: B010 - as a test would
        _share_the_migrated_database(where, is_migrated=is_migrated)
    try:
        return int(
            pytest.main([*_ARGUMENTS, f"--rootdir={where.root}", *arguments], [plugin, _Alike()])
        )
    finally:
        if server is not None:
            for name in ("", "_migrated"):
                server.drop_database(f"test_{os.getpid()}{name}")


# --- Tests ----------------------------------------------------------------------------------------


class _Alike:
    """Every run is like the others, so that no slow or unlucky one seems to kill a mutant."""

    def pytest_configure(self) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutants",
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),  # the smallest example is not read
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutants")


class _Chosen:
    """Only these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        try:
            return (yield)
        finally:
            # A mutant may change the names of cases: then all are as good as the chosen ones.
            chosen = [item for item in items if item.nodeid in self._place] or items[:]
            items[:] = sorted(chosen, key=lambda item: self._place.get(item.nodeid, 0))


class _Recorder:
    """Writes for each test how long it takes, and which functions of these files it calls."""

    def __init__(self, path: Path, files: dict[str, str]) -> None:
        self._path, self._files = path, files
        self._known = Known(calls={_AT_START: []})
        self._called: set[str] = set()  # since the last look: `module:qualified name`
        self._caches: list[Any] = []
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (module := self._files.get(frame.f_code.co_filename)):
            self._called.add(f"{module}:{frame.f_code.co_qualname}")

    def pytest_collection_finish(self) -> None:
        self._take(_AT_START)
        cached = [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]
        codes = ((one, getattr(one.__wrapped__, "__code__", None)) for one in cached)
        self._caches = [one for one, code in codes if code and code.co_filename in self._files]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        for cache in self._caches:
            cache.cache_clear()  # or a function would not be called again
        sys.setprofile(self._note)  # a test may have had its own
        began = time.process_time()
        try:
            return (yield)
        finally:
            self._known.seconds[item.nodeid] = time.process_time() - began
            self._take(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        if fixturedef.scope != "session":
            return (yield)
        before = set(self._called)
        try:
            return (yield)
        finally:
            self._take(_AT_START)
            self._called |= before

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == 0 and self._known.seconds:
            found = {"seconds": self._known.seconds, "calls": self._known.calls}
            self._path.write_text(json.dumps(found))

    def _take(self, test: str) -> None:
        self._known.calls[test] = sorted({*self._known.calls.get(test, ()), *self._called})
        self._called.clear()


# --- Modules --------------------------------------------------------------------------------------


def function_at(source: str, line: int) -> str:
    """The qualified name of the function whose body has this line; empty if there is none."""
    found, waiting = "", [compile(source, "", "exec")]
    while waiting:
        code = waiting.pop()
        lines = {at for *_, at in code.co_lines() if at} - {code.co_firstlineno}
        if lines and min(lines) <= line <= max(lines) and code.co_name != "<module>":
            found = max(found, code.co_qualname, key=len)
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    return found


def _import_instead(path: Path, source: str) -> None:
    """From now on this process imports that source from that file."""
    assert not any(getattr(one, "__file__", "") == str(path) for one in sys.modules.values())
    get_code = SourceFileLoader.get_code

    def get_mutant(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if loader.path != str(path):
            return get_code(loader, fullname)
        return compile(source, loader.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_mutant  # type: ignore[method-assign,assignment]


# --- Databases ------------------------------------------------------------------------------------


def _share_the_migrated_database(where: Where, *, is_migrated: bool) -> None:
    """Migrations take ten times as long as the tests: the run without a mutant does them."""
    from django.db.backends.base.creation import BaseDatabaseCreation

    migrate = BaseDatabaseCreation.create_test_db

    def create(self: Any, *arguments: Any, **options: Any) -> str:
        self.connection.settings_dict["TEST"]["NAME"] = (
            f"test_{os.getpid()}" if where.postgres else self._get_test_db_name()
        )
        name: str = self._get_test_db_name()
        if not is_migrated:
            migrate(self, *arguments, **options)
            self.connection.close()
            _copy(where, name, _MIGRATED)
        else:
            self.connection.close()
            _copy(where, _MIGRATED, name)
            self.connection.settings_dict["NAME"] = name
        return name

    BaseDatabaseCreation.create_test_db = create  # type: ignore[method-assign]


def _copy(where: Where, source: str, target: str) -> None:
    if where.postgres is not None:
        where.postgres.drop_database(target)
        where.postgres.execute(f'CREATE DATABASE "{target}" TEMPLATE "{source}"')
        return
    one, other = (where.folder / f"{name}" for name in (source, target))  # a full path stays
    with closing(sqlite3.connect(one)) as read, closing(sqlite3.connect(other)) as written:
        read.backup(written)
