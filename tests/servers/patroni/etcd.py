"""A real etcd, of one member, with `deploy/patroni/etcd.env`."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.servers.patroni.files import ENVIRONMENT, HOST, changed, program
from tests.servers.postgres import postgres_user
from tests.servers.processes import free_port, new_folder, start_process, stop_process


@dataclass
class Etcd:
    """It keeps its data when it is killed, until it is stopped."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    start_again: Callable[[], subprocess.Popen[bytes]]

    def kill(self) -> None:
        stop_process(self.process, signal.SIGKILL)

    def start(self) -> None:
        """What its supervisor does, if it has ended."""
        if self.process.poll() is not None:
            self.process = self.start_again()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_etcd() -> Etcd:
    """Raises NotAvailable where there is no etcd."""
    path = program("etcd", "etcd-server")
    folder, port = new_folder("etcd", postgres_user()), free_port()
    text = changed(
        "etcd.env",
        (r",http://127\.0\.0\.1:2379$", ""),
        (r",db-2=.*", ""),  # one stands for three
        (r"10\.0\.0\.21:2379", f"{HOST}:{port}"),
        (r"10\.0\.0\.21:2380", f"{HOST}:{free_port()}"),
        (r"/var/lib/etcd/identity", f"{folder}/data"),
    )
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    settings = dict(line.split("=", 1) for line in lines)

    def start() -> subprocess.Popen[bytes]:
        return start_process(
            [path],
            folder / "log",
            lambda: _is_ready(port),
            cwd=folder,
            env={**ENVIRONMENT, **settings},
            user=postgres_user(),
        )

    return Etcd(folder, port, start(), start)


def _is_ready(port: int) -> bool:
    try:
        answer = httpx.get(f"http://{HOST}:{port}/health", timeout=2)
    except httpx.TransportError:
        return False
    return answer.status_code == 200
