"""Mutants of functions, tried without a new start: a process collects the tests once, and each
mutant is put into the functions of a fork of it, which runs the tests that call them.

What an import has called or stored, and what a program reads that a test starts, is not replaced by
that: such mutants are left to `trying`.
"""

import gc
import inspect
import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from proofs.mutants.making import Mutant
from proofs.mutants.trying import Chosen, Copy, Known, ended, file_of, start

_FAILED = 1


class _NotPossible(Exception):
    """It is not only in functions that this process has."""


def try_in_memory(
    copies: Sequence[Copy],
    known: Known,
    tests: Mapping[Mutant, Sequence[str]],
    arguments: Sequence[str],
) -> dict[Mutant, int]:
    """The status, 0 if no test failed, for each mutant that could be put in."""
    if "--database=postgresql" in arguments:
        return {}  # the forks would share its server
    mutants, children = list(tests), list[int]()
    for number, copy in enumerate(copies):
        part = {
            one: [test for test in tests[one] if not known.starts_programs(test)]
            for one in mutants[number :: len(copies)]
        }
        files = dict.fromkeys(file_of(test) for chosen in part.values() for test in chosen)
        copy.outcomes.write_text("")
        if files:
            migrated = copy.migrated if copy.migrated.exists() else None
            # Not by file descriptors, which the forks would share.
            given = [*arguments, "--capture=sys", *files]
            children.append(start(copy, given, partial(_Loop, known, part, copy), migrated))
    for child in children:
        ended(child)
    lines = [line for copy in copies for line in copy.outcomes.read_text().splitlines()]
    by_id, statuses = {one.id: one for one in mutants}, dict(map(json.loads, lines))
    return {by_id[name]: status for name, status in statuses.items()}


class _Loop(Chosen):
    """In place of the tests of the session: a fork for each mutant, which runs the tests of it."""

    def __init__(self, known: Known, mutants: Mapping[Mutant, Sequence[str]], copy: Copy) -> None:
        super().__init__(known, known.seconds)
        signal.alarm(0)  # the collection is that of many
        self._known, self._mutants, self._copy = known, mutants, copy

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
        base = session.config.option.basetemp
        left = set(Path(base).parent.iterdir()) if base else set()
        for mutant, tests in self._mutants.items():
            try:
                replaced = list(self._replaced(mutant, functions))
            except _NotPossible:
                continue
            if not (child := os.fork()):
                _run(session, [items[test] for test in tests if test in items], replaced)
            status = ended(child)
            for path in set(Path(base).parent.iterdir()) - left if base else ():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            with self._copy.outcomes.open("a") as file:
                file.write(json.dumps([mutant.id, status]) + "\n")
        return True

    def _replaced(
        self, mutant: Mutant, functions: Sequence[FunctionType]
    ) -> Iterator[tuple[FunctionType, CodeType]]:
        """What each function of this process has to have instead; raises _NotPossible."""
        path = self._copy.root / mutant.module
        before, after = (
            compile(source, str(path), "exec")
            for source in (path.read_text(encoding="utf-8"), mutant.source)
        )
        for old, new, is_outermost in _pairs(before, after):
            found = [one for one in functions if _place(one.__code__) == _place(old)]
            if (
                (is_outermost and not found)  # not imported yet
                or self._known.is_called_at_start(mutant.module, old.co_qualname)
                or old.co_freevars != new.co_freevars
            ):
                raise _NotPossible
            yield from ((one, new) for one in found)


def _run(
    session: pytest.Session, items: list[pytest.Item], replaced: list[tuple[FunctionType, CodeType]]
) -> None:
    """Until a test fails; ends the process."""
    status = _FAILED
    try:
        os.setpgid(0, 0)
        for function, code in replaced:
            function.__code__ = code
        for item, following in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return
        status = 0
    except pytest.exit.Exception as stopped:
        status = stopped.returncode or status
    finally:
        os._exit(status)


def _pairs(
    old: CodeType, new: CodeType, *, is_in_function: bool = False
) -> Iterator[tuple[CodeType, CodeType, bool]]:
    """The functions that differ, or have one in them that does, and whether they are in none."""
    inner_old, inner_new = (
        [value for value in code.co_consts if isinstance(value, CodeType)] for code in (old, new)
    )
    if len(inner_old) != len(inner_new):
        raise _NotPossible
    is_function = bool(old.co_flags & inspect.CO_OPTIMIZED)
    inside = [
        pair
        for one, other in zip(inner_old, inner_new, strict=True)
        for pair in _pairs(one, other, is_in_function=is_in_function or is_function)
    ]
    differs = _own(old) != _own(new)
    if differs and not is_function and not is_in_function:
        raise _NotPossible
    if (differs or inside) and is_function:
        yield old, new, not is_in_function
    yield from inside


def _place(code: CodeType) -> tuple[object, ...]:
    return (code.co_filename, code.co_firstlineno, code.co_qualname, _own(code))


def _own(code: CodeType) -> tuple[object, ...]:
    """What it does, without its line numbers and the functions in it."""
    values = [(type(one), one) for one in code.co_consts if not isinstance(one, CodeType)]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, code.co_exceptiontable, names, values)
