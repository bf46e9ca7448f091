"""A process that has imported the libraries, and forks for each program that a test starts.

The program of `tests/servers/forks.py`, which asks over the socket that is its only argument. It
imports nothing of the service and reads none of its settings: a fork does, with its own
environment, as a new interpreter would.
"""

import contextlib
import importlib
import io
import json
import os
import select
import signal
import socket
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

# What costs time to import, reads none of our settings (gunicorn and prometheus_client do), and is
# no application of Django's, whose presence means something.
LIBRARIES = (
    *("django.core.management.commands.migrate", "django.core.management.commands.shell"),
    *("django.core.handlers.asgi", "django.core.handlers.wsgi", "django.core.checks.registry"),
    *("django.db.backends.sqlite3.base", "django.db.backends.postgresql.base"),
    *("django.db.models", "django.forms", "django.template.loader_tags", "django.test.client"),
    *("django.template.defaulttags", "django.template.backends.django", "django.urls"),
    *("django.views.generic", "django.utils.translation.trans_real", "django.utils.log"),
    *(
        "asyncio",
        "email.message",
        "multiprocessing",
        "sqlite3",
        "unittest.mock",
        "wsgiref.handlers",
    ),
    *("cryptography.x509", "cryptography.fernet", "jwt", "jwcrypto.jwk", "lmdb", "msgspec"),
    *("fido2.server", "jinja2", "oauthlib.oauth2", "psycopg"),
    *("psycopg.pq", "psycopg.types.json", "pygments.lexers", "pygments.formatters"),
    *("python_calamine", "qrcode", "requests", "sqlparse", "uritemplate", "uuid_utils"),
    *("whitenoise.base", "xlsxwriter", "yaml"),
    *("httptools", "uvicorn", "uvicorn.protocols.http.httptools_impl", "uvloop"),
)


def main() -> None:
    """Answers requests until the test's process has gone; in a fork it runs the program."""
    del sys.path[0]  # the folder of this program
    with warnings.catch_warnings():  # a new process may never import what adds some
        for library in LIBRARIES:
            importlib.import_module(library)
    program = _serve(socket.socket(fileno=int(sys.argv[1])))
    if program:
        _run(program)


def _run(program: list[str]) -> None:
    """As the interpreter runs a script."""
    file = Path(program[0]).absolute()
    sys.argv = program
    sys.path.insert(0, str(file.resolve().parent))
    main_module = sys.modules["__main__"] = ModuleType("__main__")
    main_module.__file__ = str(file)
    exec(compile(file.read_bytes(), file, "exec"), vars(main_module))  # noqa: S102


def _serve(requests: socket.socket) -> list[str]:
    """In a fork: what it runs. In the server: nothing, at its end."""
    reports: dict[int, int] = {}  # to where the end of each fork is written
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready, _, _ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 1024)
            _report_ends(reports)
        if requests.fileno() not in ready:
            continue
        asked, files, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not asked:
            return []
        request = json.loads(asked)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, before)
            for descriptor in (woken, wake, *reports.values()):
                os.close(descriptor)
            requests.close()
            _become(request, files[:3])
            os.write(files[3], f"{os.getpid()}\n".encode())  # from now on it can be stopped
            os.close(files[3])
            arguments: list[str] = request["arguments"]
            return arguments
        reports[pid] = files[3]
        for file in files[:3]:
            os.close(file)


def _report_ends(reports: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            report = reports.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # the test no longer listens
                os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(report)


def _become(request: dict[str, object], files: list[int]) -> None:
    """As a new process: its environment, folder, session, and standard files."""
    if request["new_session"]:
        os.setsid()
    os.chdir(str(request["folder"]))
    environment = request["environment"]
    assert isinstance(environment, dict)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        new = _standard_file(number, name, getattr(sys, name))
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _standard_file(number: int, name: str, old: Any) -> io.TextIOWrapper:
    """As Python opens it at its start; with PYTHONUNBUFFERED it writes through."""
    binary: Any = open(number, "rb" if number == 0 else "wb", closefd=False)  # noqa: SIM115
    binary.raw.name = f"<{name}>"
    by_line = not old.write_through and (name == "stderr" or binary.isatty())
    text = io.TextIOWrapper(
        binary, old.encoding, old.errors, line_buffering=by_line, write_through=old.write_through
    )
    text.mode = old.mode  # type: ignore[misc]
    return text


if __name__ == "__main__":
    main()
