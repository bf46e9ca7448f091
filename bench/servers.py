"""Starts what is measured, each as in production, with two worker processes."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.servers import (
    CHECKOUT,
    TEST_SECRETS,
    NotAvailable,
    Service,
    clean_environment,
    free_port,
    is_ready,
    service_environment,
    start_service,
)

WORKERS = 2
_START_SECONDS = 30.0
# The login alone, behind a proxy that ends TLS and names the client's address: README, "Run it for
# real".
_AS_IN_PRODUCTION = {
    "SERVE": "login",
    "AUTH_URL": "https://127.0.0.1",
    "TRUSTED_PROXIES": "127.0.0.1",
    "WEB_PROCESSES": str(WORKERS),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A running server. `database_pid` is the server that works for it, if there is one."""

    name: str
    port: int
    pid: int
    stop: Callable[[], object]
    database_pid: int | None = None


def start_identity(
    name: str,
    folder: Path,
    database_url: str,
    database_pid: int | None,
    *,
    module: str = "",
    ready: Callable[[str], bool] = is_ready,
    settings: Mapping[str, str] | None = None,
) -> Target:
    """This service, by its production configuration. Without a database URL on SQLite.

    `module` is another WSGI application to serve in its place; `ready` says of a URL whether the
    start is over.
    """
    var = var_folder(name, folder)
    given = dict(settings or {})
    if database_url:
        given["DATABASE_URL"] = database_url
    environment = service_environment(var, free_port(), **{**_AS_IN_PRODUCTION, **given})
    log = var / "log"
    log.unlink(missing_ok=True)
    service: Service = start_service(environment, log, _configuration(var, module), ready)
    return Target(name, int(environment["PORT"]), service.pid, service.stop, database_pid)


def _configuration(var: Path, module: str) -> Path:
    made_for_production = CHECKOUT / "deploy" / "uwsgi.ini"
    if not module:
        return made_for_production
    changed, count = re.subn(
        r"(?m)^module *=.*$", f"module = {module}", made_for_production.read_text()
    )
    if count != 1:
        raise NotAvailable("deploy/uwsgi.ini names no module, or several")
    (var / "uwsgi.ini").write_text(changed, encoding="utf-8")
    return var / "uwsgi.ini"


def var_folder(name: str, folder: Path) -> Path:
    """Where the service of this name keeps its files."""
    var = folder / "service" / name
    var.mkdir(parents=True, exist_ok=True)
    return var


def start_granian(
    name: str,
    folder: Path,
    application: str,
    *,
    database_pid: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Target:
    """A peer on granian, the leanest server for a WSGI application."""
    port, log = free_port(), folder / f"{name}.log"
    command = [
        *(str(Path(sys.executable).parent / "granian"), "--interface", "wsgi", "--no-ws"),
        *("--host", "127.0.0.1", "--port", str(port), "--workers", str(WORKERS), application),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=CHECKOUT,
            env={**clean_environment(), **TEST_SECRETS, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    target = Target(name, port, process.pid, lambda: _stop(process), database_pid)
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > deadline:
            _stop(process)
            raise NotAvailable(f"{name} did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.05)
    return target


def _answers(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/", timeout=2)
    except httpx.TransportError:
        return False
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)
