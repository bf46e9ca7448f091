"""Runs the tests of a module against the mutants of its functions, in forks of one process.

That process has imported everything, migrated the database and run all the tests once. A fork of
it puts the mutant's code into the functions and runs only the tests that call them. What is worked
out at an import or by a fixture of the session (a migration) stays as it was: so a mutant of a
function that these call survives here only for the time being. It is left to `runner`, as is one
that does not end, and each mutant of anything but a function.
"""

import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence, Set
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import pytest
from pytest_django.plugin import blocking_manager_key

from proofs.mutants import migrated
from proofs.mutants.forks import Limits, end_group, run_in_fork, start_fork
from proofs.mutants.functions import CALLS, Codes, Functions, recording
from proofs.mutants.mutants import Mutant
from proofs.mutants.runner import (
    ARGUMENTS,
    NoVerdict,
    Outcome,
    Run,
    import_instead,
    migrated_path,
    name_of,
    redirect,
)

_KILLED = 1
# Of the processor; longer tests are not run a second time without a mutant.
_LONG_SECONDS = 0.5


# These pass a second time in one process: arguments of pytest.
_passed_twice: set[tuple[str, ...]] = set()


def run_quickly(
    arguments: tuple[str, ...], output: Path, root: Path, mutants: Sequence[Mutant]
) -> Generator[tuple[Mutant, Run]]:
    """Of the mutants of a module those whose outcome is certain by these arguments of pytest.

    `root` is the folder of the modules. Raises NoVerdict.
    """
    reader, writer = os.pipe()
    module = mutants[0].module

    def run() -> int:
        os.close(reader)
        redirect(output)
        migrated.path = migrated_path(arguments, output, mutants[0])
        import_instead(module, recording((root / module).read_text(encoding="utf-8")))
        with os.fdopen(writer, "w") as report:
            forks = _Forks(root, mutants, report, passed_twice=arguments in _passed_twice)
            return int(pytest.main([*ARGUMENTS, *arguments], [forks]))

    child = start_fork(run)
    os.close(writer)
    status = 0
    try:
        with os.fdopen(reader) as report:
            for line in report:
                number, outcome, killed_by = json.loads(line)
                yield mutants[number], Run(Outcome(outcome), killed_by)
    except GeneratorExit:
        os.kill(child, signal.SIGTERM)  # it stops its database
        raise
    finally:
        _, status = os.waitpid(child, 0)
        end_group(child)
    if status:
        raise NoVerdict(output.read_text(encoding="utf-8", errors="replace"))
    _passed_twice.add(arguments)


class _Calls(set[str]):
    """The qualified names of called functions; forks of this process write theirs into a file."""

    def __init__(self, file: int) -> None:
        self._file, self._process = file, os.getpid()

    def add(self, name: str) -> None:
        if name not in self:
            super().add(name)
            if os.getpid() != self._process:
                os.write(self._file, f"{name}\n".encode())  # all share one place in the file

    def of_all(self) -> Set[str]:
        """Also those of the forks, which have ended."""
        os.lseek(self._file, 0, os.SEEK_SET)
        written = b"".join(iter(lambda: os.read(self._file, 65536), b""))
        os.lseek(self._file, 0, os.SEEK_SET)
        os.ftruncate(self._file, 0)
        return self | set(written.decode().splitlines())


class _Forks:
    """For pytest: all tests once as they are, and those that call it for each changed function."""

    def __init__(
        self, root: Path, mutants: Sequence[Mutant], report: TextIO, *, passed_twice: bool
    ) -> None:
        self._module = mutants[0].module
        self._path = root / self._module
        self._mutants = mutants
        self._report = report
        self._passed_twice = passed_twice
        self._number: int | None = None  # of the mutant of this fork
        self._is_fork = False
        self._called_once: set[str] = set()  # by imports, and by fixtures of the session
        self._globals: dict[str, Any] = {}  # of the module
        self._calls: dict[pytest.Item, Set[str]] = {}
        self._seconds: dict[pytest.Item, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or not session.items:
            return None  # pytest says why
        functions = self._run_recorded(session)
        if functions is None:
            return True
        short = [item for item in session.items if self._seconds[item] < _LONG_SECONDS]
        if not self._passed_twice and run_in_fork(partial(self._run, session, short)).status:
            raise NoVerdict("The tests do not pass a second time in one process.")
        for number, mutant in enumerate(self._mutants):
            self._number = number
            self._try(session, functions, functions.changed_by(mutant.source))
        return True

    def _try(self, session: pytest.Session, functions: Functions, changed: Codes) -> None:
        tests = [item for item in session.items if self._calls[item] & changed.keys()]
        tests.sort(key=self._seconds.__getitem__)
        limits = Limits.after(sum(self._seconds[item] for item in tests))
        status = 0
        if tests:
            ended = run_in_fork(partial(self._run, session, tests, functions, changed), limits)
            status = ended.status
            if ended.is_timeout and ended.cpu_seconds >= limits.cpu_seconds:  # not: it waits
                self._tell(Outcome.TIMEOUT)
        is_certain = functions.can_replace(changed) and not self._called_once & changed.keys()
        if not status and is_certain:
            self._tell(Outcome.SURVIVED)

    def _run_recorded(self, session: pytest.Session) -> Functions | None:
        """Runs all the tests, and finds out what each of them calls; None if one fails."""
        self._globals = vars(import_module(name_of(self._module)))
        self._called_once = set(self._globals[CALLS])
        functions = Functions(self._path.read_text(encoding="utf-8"), self._path)
        with tempfile.TemporaryFile(buffering=0) as of_forks:
            for item in session.items:
                functions.forget_results()  # or a function would not be called again
                self._globals[CALLS] = calls = _Calls(of_forks.fileno())
                began = time.process_time()
                _run_test(item, session)
                self._seconds[item] = time.process_time() - began
                self._calls[item] = calls.of_all()
        if session.testsfailed:
            return None
        _close_connections()
        functions = Functions(self._path.read_text(encoding="utf-8"), self._path)
        functions.replace(functions.codes)  # they need not record any more
        gc.collect()
        gc.freeze()
        return functions

    def _run(
        self,
        session: pytest.Session,
        tests: Sequence[pytest.Item],
        functions: Functions | None = None,
        changed: Codes | None = None,
    ) -> int:
        self._is_fork = True
        if self._number is not None:
            session.config.option.tbstyle = "no"  # it takes ten times as long as the test
        _prepare_fork(session.config)
        if functions and changed:
            functions.replace(changed)
        for item in tests:
            _run_test(item, session)
        return 0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        if fixturedef.scope != "session" or not self._globals:
            return (yield)
        of_test, self._globals[CALLS] = self._globals[CALLS], self._called_once
        try:
            return (yield)
        finally:
            self._globals[CALLS] = of_test

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.failed or not self._is_fork:
            return
        if self._number is None:
            os.write(2, f"{report.longreprtext}\n{report.caplog}\n".encode())
        else:
            self._tell(Outcome.KILLED, report.nodeid)
        os._exit(_KILLED)

    def _tell(self, outcome: Outcome, killed_by: str = "") -> None:
        self._report.write(json.dumps((self._number, outcome, killed_by)) + "\n")
        self._report.flush()


def _run_test(item: pytest.Item, session: pytest.Session) -> None:
    # After it nothing is left but the fixtures of the session, so that any test can be the next.
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=session)


def _close_connections() -> None:
    """A fork must not use them."""
    django = sys.modules.get("django.db")
    if django is not None:
        django.connections.close_all()


def _prepare_fork(config: pytest.Config) -> None:
    """Its files and its database are those of no other fork."""
    conftest = sys.modules.get("tests.conftest")
    if conftest is None:
        return
    stash = config.stash
    stash[conftest.FOLDER] = Path(tempfile.mkdtemp(dir=stash[conftest.FOLDER]))
    if conftest.MIGRATED in stash:
        with stash[blocking_manager_key].unblock():
            stash[conftest.MIGRATED].restore()
