"""Runs the tests of a module against one mutant, in a separate process.

That process is forked from one that has imported the libraries, but nothing of the service: a new
one would need three times as long. It imports the mutant in place of the module; no file changes.
"""

import contextlib
import gc
import importlib
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import spec_from_file_location
from math import ceil
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from zlib import crc32

import pytest

from tests.mutants import migrated
from tests.mutants.mutants import Mutant

# Imported once, before the first test: none of them needs Django's settings.
_LIBRARIES = (
    *("hypothesis", "factory", "httpx", "requests", "authlib", "joserfc.jwk", "python_calamine"),
    *("django.test", "django.db.models", "django.db.backends.sqlite3.base", "django.views.debug"),
    *("django.core.management", "django.core.mail", "django.template.loader"),
    *("cryptography.fernet", "jwt", "lmdb", "msgspec", "oauthlib.oauth2", "prometheus_client"),
    *("psycopg", "environs", "uuid_utils.compat"),
)
_ARGUMENTS = (
    *("-x", "-p", "tests.mutants.in_order", "-p", "tests.mutants.migrated"),
    # pytest would rewrite the assertions of its plug-ins; they were imported before.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    # It collects garbage at the end, a fifth of the time of a run that fails at once.
    *("-p", "no:unraisableexception"),
)
_OURS = ("identity", "taxpayers", "tokens")
# The migrations run what is in these: a mutant of it is migrated by itself.
_MIGRATIONS = "taxpayers/facts/epochs/"
_TIME_IS_OVER = 99
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Outcome(StrEnum):
    KILLED = "killed"  # a test failed, or the module could not be imported
    TIMEOUT = "timeout"  # the tests did not end: they failed as well
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class Run:
    """How the tests ended: the first one that failed, and what they cost the processor."""

    outcome: Outcome
    killed_by: str = ""
    cpu_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """For one run: seconds of the processor, and seconds of the clock on a machine that is busy."""

    cpu_seconds: int = 300
    seconds: int = 1500

    @classmethod
    def after(cls, unchanged: Run) -> "Limits":
        """Enough for a mutant, when the tests without one took as long as in this run."""
        cpu_seconds = ceil(2 + 4 * unchanged.cpu_seconds)
        return cls(cpu_seconds, 30 + 5 * cpu_seconds)


_GENEROUS = Limits()


class NoVerdict(Exception):
    """The tests could not be run at all; the message is what pytest wrote."""


def prepare() -> None:
    """Imports what each run needs, once for all of them."""
    sys.dont_write_bytecode = False  # what is not a mutant is compiled once
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # what is here already is no garbage of a run
    ours = [name for name in sys.modules if name.split(".")[0] in _OURS]
    assert not ours, f"a mutant of these would not be imported any more: {ours}"


def run_tests(
    arguments: Sequence[str], output: Path, mutant: Mutant | None = None, limits: Limits = _GENEROUS
) -> Run:
    """The tests that these arguments of pytest choose, up to the first failure.

    `output` gets what pytest writes. Raises NoVerdict if it finds no test or no such argument.
    """
    child = os.fork()
    if not child:
        _become_the_run(arguments, output, mutant, limits)
    _, status, usage = os.wait4(child, 0)
    _end_group(child)
    code = os.waitstatus_to_exitcode(status)
    if code == pytest.ExitCode.OK:
        return Run(Outcome.SURVIVED, cpu_seconds=usage.ru_utime + usage.ru_stime)
    if code < 0 or code == _TIME_IS_OVER:
        return Run(Outcome.TIMEOUT)
    written = output.read_text(encoding="utf-8", errors="replace")
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise NoVerdict(written)
    failed = _FAILED.search(written)
    return Run(Outcome.KILLED, failed[1] if failed else "")


def _become_the_run(
    arguments: Sequence[str], output: Path, mutant: Mutant | None, limits: Limits
) -> None:
    code = 3
    try:
        os.setpgid(0, 0)
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        signal.signal(signal.SIGXCPU, _stop)
        signal.signal(signal.SIGALRM, _stop)
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 5))
        signal.alarm(limits.seconds)
        migrated.path = _migrated_path(arguments, output, mutant)
        if mutant is not None:
            sys.meta_path.insert(0, _MutantFinder(mutant))
        code = int(pytest.main([*_ARGUMENTS, *arguments]))
    except BaseException:  # noqa: BLE001 - whatever it is, it ends this process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _migrated_path(arguments: Sequence[str], output: Path, mutant: Mutant | None) -> Path | None:
    """The database that the run without a mutant leaves to the others with these arguments."""
    if mutant is not None and mutant.module.startswith(_MIGRATIONS):
        return None
    path = output.with_name(f"migrated-{crc32(' '.join(arguments).encode()):x}.sqlite3")
    if mutant is None:
        path.unlink(missing_ok=True)
    return path


def _stop(signum: int, frame: object) -> None:
    """The tests clean up after themselves; what does not stop is killed a little later."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(10)
    pytest.exit("the time is over", returncode=_TIME_IS_OVER)


def _end_group(child: int) -> None:
    """Whatever the tests have started and not ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


class _MutantFinder(MetaPathFinder):
    """Imports the mutant under the name of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = mutant.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _MutantLoader(fullname, self._mutant.module)
        loader.source = self._mutant.source
        return spec_from_file_location(fullname, self._mutant.module, loader=loader)


class _MutantLoader(SourceFileLoader):
    source: str

    def get_code(self, fullname: str) -> CodeType:
        code = compile(self.source, self.path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code
