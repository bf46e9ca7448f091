"""`demo`: the embedded start, from nothing to a service with sample data (contract 6)."""

import errno
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connections

from identity.demo.preparation import (
    INTERMEDIARY,
    OWNERS,
    STAFF_USER,
    TAXPAYER,
    SavedCredentials,
    prepare,
)
from identity.demo_address import save_demo_address
from identity.metrics_files import is_running
from taxpayers.management.command import Output, ServiceCommand
from taxpayers.secret_once import login_example
from taxpayers.services import Author

_HOST = "127.0.0.1"
_START_SECONDS = 60.0


class Command(ServiceCommand):
    help = "Start the service with sample data. The first run creates it, later runs show it again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=settings.PORT)
        parser.add_argument("--no-serve", action="store_true", help="only create the sample data")

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        if settings.ENVIRONMENT != "test":
            raise CommandError("The demo creates sample data: it runs with ENVIRONMENT=test only.")
        if not options["no_serve"]:
            _refuse_busy_port(options["port"])
        return _answer(prepare(at), options["port"])

    def write_answer(self, answer: Output, options: dict[str, Any]) -> None:
        write = super().write_answer
        if options["no_serve"]:
            write(answer, options)
        else:
            save_demo_address(settings.VAR_DIR, answer.data["auth_url"])
            # Once the server is ready: after its own first lines, so that these stay in view.
            _serve(options["port"], on_ready=lambda: write(answer, options))


def _answer(credentials: SavedCredentials, port: int) -> Output:
    # The same values as in the settings, except for the port.
    auth_url = os.environ.get("AUTH_URL") or f"http://{_HOST}:{port}"
    staff_url = os.environ.get("STAFF_URL") or auth_url.replace(f"//{_HOST}", "//localhost", 1)
    sample, password = credentials.sample, credentials.staff_password
    endpoint = f"{auth_url}/connect/token"
    curl = {owner: login_example(sample[owner], endpoint) for owner in OWNERS}
    curl["intermediary"] += f" -H 'onbehalfof: {TAXPAYER}'"
    data: dict[str, Any] = {
        "auth_url": auth_url,
        "token_endpoint": endpoint,
        "admin_url": f"{staff_url}/admin/",
        "staff": {"username": STAFF_USER, "password": password},
        **{owner: asdict(credentials) for owner, credentials in sample.items()},
        "curl": curl,
    }
    data["taxpayer"] |= {"tin": TAXPAYER}
    data["intermediary"] |= {"tin": INTERMEDIARY, "onbehalfof": TAXPAYER}
    here, python = Path.cwd(), Path(sys.executable)
    python = python.relative_to(here) if python.is_relative_to(here) else python
    shown_password = password or f"changed since; manage.py changepassword {STAFF_USER}"
    text = f"""
The token service is at {auth_url}

Log in as the taxpayer {TAXPAYER}:

{curl["taxpayer"]}

Log in as the intermediary {INTERMEDIARY} on behalf of the taxpayer {TAXPAYER}:

{curl["intermediary"]}

As the authority's portal: to register and grant, and to issue ({auth_url}/management-api):

{curl["portal"]}

{curl["issuing"]}

Staff: {staff_url}/admin/  user {STAFF_USER}  password {shown_password}

More commands on the same data, from another shell: {python} manage.py help
"""
    return Output(data, text)


def _refuse_busy_port(port: int) -> None:
    """Raises CommandError if nothing can listen on this port."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((_HOST, port))
    except OverflowError:
        raise CommandError(f"{port} is not a port: choose one from 1024 to 65535.") from None
    except OSError as fault:
        if fault.errno != errno.EADDRINUSE:
            raise CommandError(f"Port {port} cannot be used: {fault.strerror}.") from None
        raise CommandError(
            f"Port {port} is in use, perhaps by this service already. Stop the program that uses"
            f" it, or choose another port: PORT={port + 1} make run"
        ) from None


def _serve(port: int, on_ready: Callable[[], None]) -> NoReturn:
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
        with urllib.request.urlopen(f"http://{_HOST}:{port}/health/ready", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False
