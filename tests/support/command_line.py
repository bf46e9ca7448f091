"""`manage.py` for tests: in this process where possible, in its own to prove what only that can."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import pytest
from django.core.management import CommandError, ManagementUtility, call_command
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.utils import ConnectionHandler

from identity.databases import database
from tests.servers.processes import run_python


def output_of(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    call_command(*arguments, stdout=out, stderr=err)
    assert err.getvalue() == ""
    return out.getvalue()


def json_output_of(*arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(output_of(*arguments, "--json"))
    return answer


def error_of(*arguments: str) -> str:
    """The one line on stderr of a command that is refused, or whose arguments are wrong."""
    with pytest.raises(CommandError) as fault:
        output_of(*arguments)
    line = str(fault.value).removeprefix("Error: ")
    assert line.strip()
    assert "\n" not in line
    assert fault.value.returncode in (1, 2)
    return line


def run(
    *arguments: str, encoding: str = "utf-8", stderr: TextIO | None = None
) -> tuple[int, str, str]:
    """As `manage`, in this process; with an encoding of stdout, and a terminal for stderr."""
    written, err, code = io.BytesIO(), io.StringIO(), 0
    out = io.TextIOWrapper(written, encoding, write_through=True)
    argv = ["manage.py", *arguments]
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(stderr or err),
        # A command closes the connections of its process; here they are the test's.
        mock.patch.object(connections, "close_all"),
    ):
        try:
            ManagementUtility(argv).fetch_command(argv[1]).run_from_argv(argv)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return code, written.getvalue().decode(encoding), err.getvalue()


# What lifts pytest-django's ban on queries of tests that name no database: see tests/conftest.py.
queries_allowed: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


@contextlib.contextmanager
def other_database(url: str, folder: Path) -> Iterator[None]:
    """This thread uses the database at `url`, or without one the SQLite file in `folder`."""
    present = connections[DEFAULT_DB_ALIAS]
    other = ConnectionHandler({DEFAULT_DB_ALIAS: database(url, folder)})[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = other
    with queries_allowed():
        try:
            yield
        finally:
            connections[DEFAULT_DB_ALIAS] = present
            other.close()


def manage(environment: Mapping[str, str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `manage.py` in a separate process."""
    done = run_python(["manage.py", *arguments], environment, timeout=120)
    return done.returncode, done.stdout, done.stderr
