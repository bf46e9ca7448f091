"""Protected APIs as an API team runs them, and who calls them five times a second."""

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tests.servers.nginx import nginx_program
from tests.servers.npm import install_locked
from tests.servers.processes import (
    CHECKOUT,
    Process,
    Program,
    free_port,
    listens,
    start_process,
    stop_process,
)

PACKAGE = CHECKOUT / "packages" / "einvoicing_tokens"
PAUSE_SECONDS = 0.2
REFUSED_WITHIN = 10.0  # contract 2, while any node is reached
_NGINX = """
daemon off; {user} pid {folder}/nginx.pid; error_log {folder}/error.log; events {{ }}
http {{ access_log off; server {{ listen 127.0.0.1:{port};
location / {{ proxy_pass http://127.0.0.1:{to}; }} }} }}
"""


@dataclass
class Api(Program):
    """One API; it stores what it needs for a restart in its folder."""

    name: str
    restarting: list[tuple[float, float]] = field(default_factory=list)
    ends_on = signal.SIGKILL

    def restart(self) -> None:
        began = time.monotonic()
        super().restart()
        self.restarting.append((began, time.monotonic()))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an API with the token of this client; status 0: the API did not answer."""

    api: Api
    client: str
    at: float
    status: int

    @property
    def met_restart(self) -> bool:
        """Whether it found no API to answer it, because that restarted."""
        around = any(begin - 1 <= self.at <= end + 1 for begin, end in self.api.restarting)
        return around and self.status in (0, 502)


def start_apis(stack: ExitStack, folder: Path, url: str, certificate: Path) -> list[Api]:
    """Both, for the service at this address, whose certificate they trust."""
    folder.mkdir(parents=True)
    flask, node, proxy = free_port(), free_port(), free_port()
    environment = {"PATH": os.environ["PATH"], "AUTH_URL": url, "PORT": str(node)}
    environment |= dict.fromkeys(("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"), str(certificate))
    environment["PYTHONPATH"] = str(PACKAGE / "src")
    program = install_locked(PACKAGE / "examples" / "node", folder / "node")
    apis = []

    def add(name: str, port: int, command: list[str], cwd: Path, listen: int) -> None:
        own, log = folder / name, folder / f"{name}.log"
        own.mkdir(mode=0o700)
        given = environment | {"FOLDER": str(own)}

        def start() -> Process:
            return start_process(command, log, lambda: listens(listen), cwd=cwd, env=given)

        apis.append(Api(own, port, start, name))
        stack.callback(apis[-1].stop)

    python = [sys.executable, "-B", "-m", "flask", "--app", "flask_api", "run", f"--port={flask}"]
    add("Flask", flask, python, PACKAGE / "examples", flask)
    add("Node.js", proxy, ["node", "api.js"], program, node)
    user = "user root root;" if os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(_NGINX.format(folder=folder, port=proxy, to=node, user=user))
    command = [str(nginx_program()), "-p", str(folder), "-c", str(file)]
    front = start_process(command, folder / "nginx.log", lambda: listens(proxy))
    stack.callback(stop_process, front, signal.SIGTERM)
    return apis


class Callers:
    """A thread for each API and client; `calls` grows until they stop."""

    def __init__(self, apis: list[Api], tokens: Mapping[str, str]) -> None:
        self.calls: list[Call] = []
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._call, args=(api, client, token))
            for api in apis
            for client, token in tokens.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(30)

    def _call(self, api: Api, client: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        while not self._is_over.wait(PAUSE_SECONDS):
            at, status = time.monotonic(), 0
            connection = HTTPConnection("127.0.0.1", api.port, timeout=10)
            try:
                connection.request("GET", "/documents", headers=headers)
                status = connection.getresponse().status
            except (OSError, HTTPException):
                pass
            connection.close()
            self.calls.append(Call(api, client, at, status))


def faults(calls: list[Call], apis: list[Api], refused_from: Mapping[str, float]) -> list[str]:
    """What is not as promised, in words. Pure.

    All calls of honest clients pass; of the others none from the moment of `refused_from` on.
    While an API itself restarts, it may not answer.
    """
    found: Counter[str] = Counter()
    for one in calls:
        limit = refused_from.get(one.client)
        if limit is None and one.status != 200 and not one.met_restart:
            found[f"{one.api.name} answered an honest client with {one.status}"] += 1
        if limit is not None and one.status == 200 and one.at >= limit:
            found[f"{one.api.name} accepted {one.client}"] += 1
    answered = {(one.api.name, one.client) for one in calls if one.status in (200, 401)}
    missing = len(apis) * len({one.client for one in calls}) - len(answered)
    return [f"{text}: {n} times" for text, n in found.items()] + ["no answers"] * bool(missing)
