"""The real PgBouncer with `deploy/pgbouncer.ini` itself, in front of a database of the test.

It comes from the operating system (Debian: `apt install pgbouncer`).
"""

import shutil
import signal
from urllib.parse import urlsplit

from tests.servers.postgres import postgres_user
from tests.servers.processes import (
    CHECKOUT,
    NotAvailable,
    Program,
    changed,
    free_port,
    listens,
    new_folder,
    start_process,
)

CONFIGURATION = CHECKOUT / "deploy" / "pgbouncer.ini"


class Pooler(Program):
    """A running PgBouncer."""

    ends_on = signal.SIGINT

    @property
    def url(self) -> str:
        """As the service is given it."""
        return f"{self.plain_url}?pooling=transaction"

    @property
    def plain_url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/identity"


def start_pooler(postgres_url: str, sessions: int, *more: str) -> Pooler:
    """A PgBouncer with so many sessions of that database, which it calls `identity`.

    `more` are lines of its configuration.
    """
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if program is None:
        raise NotAvailable("no PgBouncer here (apt install pgbouncer)")
    folder, port = new_folder("pgbouncer", postgres_user()), free_port()
    target = urlsplit(postgres_url)
    text = changed(
        CONFIGURATION.read_text(),
        (
            r"^identity = .*",
            f"identity = host={target.hostname} port={target.port} dbname={target.path[1:]}",
        ),
        (r"listen_port = 6432", f"listen_port = {port}"),
        (r"auth_type = scram-sha-256", "auth_type = trust"),
        (r"/etc/pgbouncer", str(folder)),
        (r"default_pool_size = \d+", f"default_pool_size = {sessions}"),
    )
    (folder / "pgbouncer.ini").write_text("\n".join([text, "unix_socket_dir =", *more, ""]))
    (folder / "userlist.txt").write_text('"postgres" ""\n')
    command = [program, str(folder / "pgbouncer.ini")]
    log, user = folder / "log", postgres_user()
    return Pooler(
        *(folder, port),
        lambda: start_process(command, log, lambda: listens(port), cwd=folder, user=user),
    )
