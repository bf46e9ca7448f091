"""The real HAProxy with `deploy/patroni/haproxy.cfg`."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.servers.patroni.files import ENVIRONMENT, HOST, changed, program, written
from tests.servers.processes import free_port, listens, new_folder, start_process, stop_process


@dataclass
class Haproxy:
    """Leads to the leader."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        stop_process(self.process, signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_haproxy(members: Sequence[tuple[int, int]]) -> Haproxy:
    """In front of members with these ports, of PostgreSQL and of Patroni.

    Raises NotAvailable where there is no HAProxy.
    """
    path = program("haproxy", "haproxy")
    folder, port = new_folder("haproxy"), free_port()
    ways = [
        (rf"10\.0\.0\.2{number}:5432 check port 8008", f"{HOST}:{postgresql} check port {rest}")
        for number, (postgresql, rest) in enumerate(members, start=1)
    ]
    users = [] if os.geteuid() == 0 else [(r"^    (?:user|group) haproxy\n", "")]
    text = changed("haproxy.cfg", (r"bind 127\.0\.0\.1:5433", f"bind {HOST}:{port}"), *ways, *users)
    configuration = written(folder / "haproxy.cfg", text)
    process = start_process(
        [path, "-db", "-f", str(configuration)],
        folder / "log",
        lambda: listens(port),
        env=ENVIRONMENT,
    )
    return Haproxy(folder, port, process)
