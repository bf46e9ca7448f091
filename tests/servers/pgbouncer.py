"""The real PgBouncer with `deploy/pgbouncer.ini` itself, in front of a database of the test.

It comes from the operating system (Debian: `apt install pgbouncer`).
"""

import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.servers.postgres import postgres_user
from tests.servers.processes import (
    CHECKOUT,
    NotAvailable,
    free_port,
    listens,
    new_folder,
    start_process,
    stop_process,
)

CONFIGURATION = CHECKOUT / "deploy" / "pgbouncer.ini"


@dataclass
class Pooler:
    """A running PgBouncer."""

    program: str
    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """As the service is given it."""
        return f"{self.plain_url}?pooling=transaction"

    @property
    def plain_url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/identity"

    def restart(self) -> None:
        stop_process(self.process, signal.SIGINT)
        self.process = _start(self.program, self.folder, self.port)

    def stop(self) -> None:
        stop_process(self.process, signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_pooler(postgres_url: str, sessions: int, *more: str) -> Pooler:
    """A PgBouncer with so many sessions of that database, which it calls `identity`.

    `more` are lines of its configuration.
    """
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if program is None:
        raise NotAvailable("no PgBouncer here (apt install pgbouncer)")
    folder, port = new_folder("pgbouncer", postgres_user()), free_port()
    target = urlsplit(postgres_url)
    text = CONFIGURATION.read_text()
    for pattern, replacement in (
        (
            r"(?m)^identity = .*",
            f"identity = host={target.hostname} port={target.port} dbname={target.path[1:]}",
        ),
        (r"listen_port = 6432", f"listen_port = {port}"),
        (r"auth_type = scram-sha-256", "auth_type = trust"),
        (r"/etc/pgbouncer", str(folder)),
        (r"default_pool_size = \d+", f"default_pool_size = {sessions}"),
    ):
        text, found = re.subn(pattern, replacement, text)
        assert found, f"{CONFIGURATION} has no {pattern}"
    (folder / "pgbouncer.ini").write_text("\n".join([text, "unix_socket_dir =", *more, ""]))
    (folder / "userlist.txt").write_text('"postgres" ""\n')
    return Pooler(program, folder, port, _start(program, folder, port))


def _start(program: str, folder: Path, port: int) -> subprocess.Popen[bytes]:
    return start_process(
        [program, str(folder / "pgbouncer.ini")],
        folder / "log",
        lambda: listens(port),
        cwd=folder,
        user=postgres_user(),
    )
