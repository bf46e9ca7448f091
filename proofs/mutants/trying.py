"""Runs tests against a mutant: it is written into a copy of the checkout, and they run there.

Each run is a fork of a process that has imported the libraries, and nothing of the project. A
first run, without a mutant, finds out which tests call which functions: only those meet a mutant of
a function, the quickest first. A mutant outside of functions, or of one that is called at an import
or by a fixture of the session, meets all tests of the room. What happens in programs that a test
starts is not observed: where the plan has them, these tests come last, for each mutant.
"""

import contextlib
import gc
import importlib
import itertools
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import _lru_cache_wrapper, partial
from importlib.metadata import entry_points
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, FrameType
from typing import Any

import pytest

from proofs.mutants.making import Mutant

# Imported once, before the first test: none of them needs Django's settings.
_LIBRARIES = (
    *("hypothesis", "factory", "httpx", "requests", "authlib", "joserfc.jwk", "python_calamine"),
    *("django.test", "django.db.models", "django.db.backends.sqlite3.base", "django.views.debug"),
    *("django.core.management", "django.core.mail", "django.template.loader"),
    *("cryptography.fernet", "jwt", "lmdb", "msgspec", "oauthlib.oauth2", "prometheus_client"),
    *("psycopg", "uuid_utils.compat"),
)
_ARGUMENTS = (
    *("-q", "-p", "no:cacheprovider"),
    # pytest would rewrite the assertions of its plug-ins; they were imported before.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    # It collects garbage at the end, a fifth of the time of a run that fails at once.
    *("-p", "no:unraisableexception", "-p", "no:faker"),
)
_NOT_COPIED = (
    *(".git", ".venv", ".bench", "var", "node_modules", "__pycache__"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"),
)
_MAX_BYTES = 4 << 30  # that are written to: an endless loop may fill a list
_START_SECONDS = 90.0  # of pytest, and of a test, for each program that wants a core
_TEST_SECONDS = 15.0
TIME_IS_OVER = 99
_AT_START = ""  # before the first test, or in a fixture of the session
_ANYTHING = "*"  # may be called by a test that starts programs
_seconds = itertools.count(1)


@dataclass
class Known:
    """What the run without a mutant has found: for each test its seconds and what it calls."""

    seconds: dict[str, float] = field(default_factory=dict)
    calls: dict[str, list[str]] = field(default_factory=lambda: {_AT_START: []})
    failed: list[str] = field(default_factory=list)  # these meet no mutant

    def tests_for(self, module: str, function: str) -> list[str]:
        """In the order in which they meet a mutant of it; `function` is empty for the module."""
        wanted = f"{module}:{function}"
        near, far, programs = list[str](), list[str](), list[str]()
        of_files = defaultdict[str, float](float)
        for test, seconds in self.seconds.items():
            of_files[file_of(test)] += seconds
        for test in sorted(self.seconds, key=self.seconds.__getitem__):
            calls = self.calls[test]
            if wanted in calls or (not function and any(one.startswith(wanted) for one in calls)):
                near.append(test)
            else:
                (programs if self.starts_programs(test) else far).append(test)
        # Those of a file share the programs that they start.
        programs.sort(key=lambda test: (of_files[file_of(test)], file_of(test)))
        meets_all = not function or self.is_called_at_start(module, function)
        return [*near, *(far if meets_all else ()), *programs]

    def is_called_at_start(self, module: str, function: str = "") -> bool:
        wanted = f"{module}:{function}"
        at_start = self.calls[_AT_START]
        return wanted in at_start if function else any(one.startswith(wanted) for one in at_start)

    def starts_programs(self, test: str) -> bool:
        return _ANYTHING in self.calls[test]


def file_of(test: str) -> str:
    return test.partition("::")[0]


class Copy:
    """A copy of the checkout; one mutant at a time is in it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.original, self.root = root, folder / "root"
        self.output, self.outcomes = folder / "output.txt", folder / "outcomes.jsonl"
        self.migrated = folder.with_name("migrated.sqlite3")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root, self.root, ignore=shutil.ignore_patterns(*_NOT_COPIED), symlinks=True)
        if (root / ".venv").exists():
            (self.root / ".venv").symlink_to((root / ".venv").resolve())

    def write(self, module: str, source: str) -> None:
        path = self.root / module
        path.write_text(source, encoding="utf-8")
        # A compiled file belongs to a source by its size and second: no two mutants have the same.
        os.utime(path, (next(_seconds), next(_seconds)))

    def restore(self, module: str) -> None:
        shutil.copy2(self.original / module, self.root / module)


def prepare() -> None:
    """Imports what each run needs, once for all of them."""
    sys.dont_write_bytecode = False
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # what is here already is no garbage of a run


def learn(copy: Copy, arguments: Sequence[str]) -> Known | None:
    """From all tests of these arguments of pytest, without a mutant; None if they do not run."""
    found = copy.root.with_name("calls.json")
    found.unlink(missing_ok=True)
    copy.migrated.unlink(missing_ok=True)
    os.waitpid(start(copy, arguments, lambda: _Recorder(found, copy.root), copy.migrated), 0)
    if not found.exists():
        return None
    return Known(**json.loads(found.read_text()))


def try_each(
    copies: Sequence[Copy],
    known: Known,
    tests: Mapping[Mutant, Sequence[str]],
    arguments: Sequence[str],
) -> Iterator[tuple[Mutant, int]]:
    """Each mutant in a process that imports it: the status, 0 if none of its tests failed."""
    free = SimpleQueue[Copy]()
    for copy in copies:
        free.put(copy)

    def status_of(mutant: Mutant) -> int:
        if not tests[mutant]:
            return 0
        copy = free.get()
        copy.write(mutant.module, mutant.source)
        is_migrated = copy.migrated.exists() and not known.is_called_at_start(mutant.module)
        given = [*arguments, "-x", "--tb=line", *dict.fromkeys(map(file_of, tests[mutant]))]
        migrated = copy.migrated if is_migrated else None
        status = ended(start(copy, given, partial(Chosen, known, tests[mutant]), migrated))
        copy.restore(mutant.module)
        free.put(copy)
        return status

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from zip(tests, pool.map(status_of, tests), strict=True)


def start(
    copy: Copy, arguments: Sequence[str], plugin: Callable[[], object], migrated: Path | None
) -> int:
    """The id of a process that ends with the status of pytest, and leads its own group.

    Migrations take ten times as long as the tests: the first run keeps the database in `migrated`,
    others copy it.
    """
    child = os.fork()
    if child:
        return child
    status = 3  # as pytest's INTERNAL_ERROR
    try:
        os.setpgid(0, 0)
        with copy.output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
        _move_to(copy.root)
        if migrated is not None:
            _share_the_database(migrated)
        arguments = [*_ARGUMENTS, f"--rootdir={copy.root}", *arguments]
        status = int(pytest.main(arguments, [plugin(), _Alike()]))
    except pytest.exit.Exception as stopped:
        status = stopped.returncode or status
    except BaseException:  # noqa: BLE001 - whatever it is, it ends this process
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def ended(child: int) -> int:
    """Waits for its end, and ends what its tests have left behind; its status."""
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return status


def _move_to(root: Path) -> None:
    """From now on this process imports the project from there."""
    here = str(Path(__file__).resolve().parents[2])
    libraries = [one for one in sys.path if (one and not one.startswith(here)) or ".venv" in one]
    sys.path[:] = [str(root), *libraries]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "proofs")]:
        del sys.modules[name]
    os.chdir(root)


def _share_the_database(migrated: Path) -> None:
    from django.db.backends.sqlite3.creation import DatabaseCreation

    migrate, is_first = DatabaseCreation.create_test_db, not migrated.exists()

    def create(self: Any, *arguments: Any, **options: Any) -> str:
        name = str(self._get_test_db_name())
        if is_first:
            migrate(self, *arguments, **options)
        self.connection.close()
        source, target = (name, migrated) if is_first else (migrated, name)
        closing, connect = contextlib.closing, sqlite3.connect
        with closing(connect(source)) as read, closing(connect(target)) as written:
            read.backup(written)
        self.connection.settings_dict["NAME"] = name
        return name

    DatabaseCreation.create_test_db = create  # type: ignore[method-assign]


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


class Chosen:
    """Only these tests, in this order; one that does not end has failed."""

    def __init__(self, known: Known, tests: Iterable[str]) -> None:
        self._known = known
        self._place = {test: place for place, test in enumerate(tests)}
        _stop_after(_START_SECONDS)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        try:
            return (yield)
        finally:
            # A mutant may change the names of cases: then all are as good as the chosen ones.
            chosen = [item for item in items if item.nodeid in self._place] or items[:]
            items[:] = sorted(chosen, key=lambda item: self._place.get(item.nodeid, 0))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        is_quick = item.nodeid in self._place and not self._known.starts_programs(item.nodeid)
        least = _TEST_SECONDS if is_quick else _START_SECONDS
        _stop_after(least + 20 * self._known.seconds.get(item.nodeid, 1))


def _stop_after(seconds: float) -> None:
    signal.signal(signal.SIGALRM, _stop)
    slowness = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    signal.alarm(round(seconds * slowness))


def _stop(signum: int, frame: object) -> None:
    """The tests clean up after themselves; what does not stop is killed a little later."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(10)
    pytest.exit("the time is over", returncode=TIME_IS_OVER)


class _Recorder:
    """Writes for each test how long it takes, and which functions of the project it calls."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path, self._root = path, f"{root}/"
        self._known = Known()
        self._called: dict[int, CodeType] = {}  # since the last look, by their ids
        self._shared: dict[str, dict[int, CodeType]] = {}  # the same in fixtures of a module
        self._caches: list[Any] = []
        threading.settrace(self._note)
        sys.settrace(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code  # at each call of the libraries, too: no more work than this
        self._called[id(code)] = code

    def pytest_collection_finish(self) -> None:
        self._take(_AT_START)
        cached = [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]
        codes = ((one, getattr(one.__wrapped__, "__code__", None)) for one in cached)
        files = ((one, code.co_filename) for one, code in codes if code)
        self._caches = [
            one for one, file in files if file.startswith(self._root) and "/tests/" not in file
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        for cache in self._caches:
            cache.cache_clear()  # or a function would not be called again
        sys.settrace(self._note)  # a test may have had its own
        began, began_to_wait = time.process_time(), time.monotonic()
        try:
            return (yield)
        finally:
            seconds, waited = time.process_time() - began, time.monotonic() - began_to_wait
            for name in getattr(item, "fixturenames", ()):
                self._called |= self._shared.get(name, {})
            is_marked = item.get_closest_marker("processes") is not None
            self._take(item.nodeid, *([_ANYTHING] if is_marked else ()))
            has_programs = _ANYTHING in self._known.calls[item.nodeid]
            self._known.seconds[item.nodeid] = waited if has_programs else seconds

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        """What several tests share is called once, and each of them may notice a fault in it."""
        if fixturedef.scope == "function":
            return (yield)
        before = dict(self._called)
        self._called.clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope == "session":
                self._take(_AT_START)
            else:
                self._shared.setdefault(fixturedef.argname, {}).update(self._called)
            self._called |= before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._known.failed.append(report.nodeid)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        for test in self._known.failed:
            self._known.seconds.pop(test, None)
        if exitstatus <= pytest.ExitCode.TESTS_FAILED and self._known.seconds:
            self._path.write_text(json.dumps(asdict(self._known)))

    def _take(self, test: str, *more: str) -> None:
        """`module:qualified name` of what was called since the last look."""
        found = {*self._known.calls.get(test, ()), *more}
        for code in list(self._called.values()):
            path = code.co_filename.removeprefix(self._root)
            if code is subprocess.Popen.__init__.__code__:
                found.add(_ANYTHING)
            elif path != code.co_filename and not path.startswith("tests/"):  # they are no mutants
                found.add(f"{path}:{code.co_qualname}")
        self._known.calls[test] = sorted(found)
        self._called.clear()


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
