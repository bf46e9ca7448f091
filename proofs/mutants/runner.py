"""Runs the tests of a module against one mutant, in a separate process.

That process is forked from one that has imported the libraries, but nothing of the service: a new
one would need three times as long. It imports the mutant in place of the module; no file changes.
"""

import ast
import gc
import importlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from zlib import crc32

import pytest

from proofs.mutants import migrated
from proofs.mutants.forks import GENEROUS, Limits, run_in_fork
from proofs.mutants.functions import OURS
from proofs.mutants.mutants import Mutant

# Imported once, before the first test: none of them needs Django's settings.
_LIBRARIES = (
    *("hypothesis", "factory", "httpx", "requests", "authlib", "joserfc.jwk", "python_calamine"),
    *("django.test", "django.db.models", "django.db.backends.sqlite3.base", "django.views.debug"),
    *("django.core.management", "django.core.mail", "django.template.loader"),
    *("cryptography.fernet", "jwt", "lmdb", "msgspec", "oauthlib.oauth2", "prometheus_client"),
    *("psycopg", "uuid_utils.compat"),
)
ARGUMENTS = (
    *("-p", "proofs.mutants.in_order", "-p", "proofs.mutants.migrated"),
    # pytest would rewrite the assertions of its plug-ins; they were imported before.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    # It collects garbage at the end, a fifth of the time of a run that fails at once.
    *("-p", "no:unraisableexception"),
    *("-p", "no:faker"),  # reads its names of people each time; no test uses its fixture
)
# `migrate` runs what is in these: a mutant of it is migrated by itself.
_MIGRATIONS = (
    *("taxpayers/facts/epochs/", "taxpayers/facts/status_triggers.py"),
    "taxpayers/facts/triggers.py",
)
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
    ours = [name for name in sys.modules if name.split(".")[0] in OURS]
    assert not ours, f"a mutant of these would not be imported any more: {ours}"


def run_tests(
    arguments: Sequence[str], output: Path, mutant: Mutant | None = None, limits: Limits = GENEROUS
) -> Run:
    """The tests that these arguments of pytest choose, up to the first failure.

    `output` gets what pytest writes. Raises NoVerdict if it finds no test or no such argument.
    """

    def run() -> int:
        redirect(output)
        migrated.path = migrated_path(arguments, output, mutant)
        if mutant is not None:
            import_instead(mutant.module, mutant.source)
        traceback = "--tb=auto" if mutant is None else "--tb=no"  # it takes time
        return int(pytest.main([*ARGUMENTS, "-x", traceback, *arguments]))

    ended = run_in_fork(run, limits)
    if ended.status == pytest.ExitCode.OK:
        return Run(Outcome.SURVIVED, cpu_seconds=ended.cpu_seconds)
    if ended.is_timeout:
        return Run(Outcome.TIMEOUT)
    written = output.read_text(encoding="utf-8", errors="replace")
    if ended.status == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise NoVerdict(written)
    failed = _FAILED.search(written)
    return Run(Outcome.KILLED, failed[1] if failed else "")


def redirect(output: Path) -> None:
    """What this process writes goes to that file."""
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def migrated_path(arguments: Sequence[str], output: Path, mutant: Mutant | None) -> Path | None:
    """The database that the first run leaves to the others with the same apps and migrations."""
    if mutant is not None and mutant.module.startswith(_MIGRATIONS):
        return None
    served = [argument for argument in arguments if argument.startswith("--serve=")][-1:]
    parts = [file.read_bytes() for file in sorted(Path.cwd().glob("*/**/migrations/*.py"))]
    parts += [file.read_bytes() for file in sorted(Path("taxpayers/facts").rglob("*.py"))]
    return output.with_name(f"migrated-{crc32(repr((served, parts)).encode()):x}.sqlite3")


def name_of(module: str) -> str:
    """The name by which the module of this path is imported."""
    return module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def import_instead(module: str, source: str | ast.Module) -> None:
    """From now on this process imports that source under the name of the module."""
    sys.meta_path.insert(0, _Finder(module, source))


class _Finder(MetaPathFinder):
    def __init__(self, module: str, source: str | ast.Module) -> None:
        self._name = name_of(module)
        self._path = str(Path(module).absolute())
        self._source = source

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _Loader(fullname, self._path)
        loader.source = self._source
        return spec_from_file_location(fullname, self._path, loader=loader)


class _Loader(SourceFileLoader):
    source: str | ast.Module

    def get_code(self, fullname: str) -> CodeType:
        code = compile(self.source, self.path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code
