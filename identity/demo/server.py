"""Turns this process into the production server, and reports when it is ready (contract 6)."""

import errno
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

from identity.metrics_files import is_running

HOST = "127.0.0.1"
_START_SECONDS = 60.0


def refuse_busy_port(port: int) -> None:
    """Raises CommandError if nothing can listen on this port."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except OverflowError:
        raise CommandError(f"{port} is not a port: choose one from 1024 to 65535.") from None
    except OSError as fault:
        if fault.errno != errno.EADDRINUSE:
            raise CommandError(f"Port {port} cannot be used: {fault.strerror}.") from None
        raise CommandError(
            f"Port {port} is in use, perhaps by this service already. Stop the program that uses"
            f" it, or choose another port: PORT={port + 1} make run"
        ) from None


def serve(port: int, on_ready: Callable[[], None]) -> NoReturn:
    """Become the server on this port; `on_ready` is called once, in another process.

    Signals then reach the server itself. Raises CommandError if its program is not installed.
    """
    program = Path(sys.executable).with_name("gunicorn")
    if not program.exists():
        raise CommandError(f"{program} is missing. Install requirements.txt, or run: make run")
    connections.close_all()
    sys.stdout.flush()
    server = os.getpid()
    _in_detached_process(lambda: _call_when_ready(port, server, on_ready))
    environment = os.environ | {"PORT": str(port), "VAR_DIR": str(settings.VAR_DIR.resolve())}
    os.chdir(settings.BASE_DIR)
    # Its own lines about the start would push what `on_ready` prints out of sight.
    quiet = ("--log-level", "warning")
    command = [str(program), "--config", "deploy/gunicorn.conf.py", *quiet]
    os.execve(program, command, environment)  # noqa: S606 - no shell is needed


def _in_detached_process(run: Callable[[], None]) -> None:
    # Forked twice: the server watches its children, so this must not be one of them.
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        if os.fork() == 0:
            run()
            sys.stdout.flush()
    finally:
        os._exit(0)


def _call_when_ready(port: int, server: int, on_ready: Callable[[], None]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and is_running(server):
        if _is_ready(port):
            on_ready()
            return
        time.sleep(0.1)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/health/ready", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False
