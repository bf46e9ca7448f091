"""The application server in production, in the folder of the checkout:

    gunicorn --config deploy/gunicorn.conf.py

PORT (8000), BIND (127.0.0.1; the proxy in front terminates TLS), WEB_PROCESSES (2) and the other
settings come from the environment. The service is loaded once, then forked; each process is one
event loop (identity/server/). Deadlines and limits of a request are in identity/server/limits.py.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
try:
    from identity import deployment
    from identity.settings import UNKNOWN_SETTINGS, WRONG_SETTINGS
except ImproperlyConfigured as error:
    sys.exit(str(error))
if WRONG_SETTINGS:
    sys.exit("\n".join(WRONG_SETTINGS))

from identity.configuration.refused_start import faults
from identity.server.fair_share import counts
from identity.server.listener import BACKLOG, refuse_handshakes
from identity.server.worker import hold_signals_over_forks

for line in UNKNOWN_SETTINGS:
    print(line, file=sys.stderr)  # noqa: T201 - nothing is logged before the server has begun

os.umask(0o077)  # what the server writes, counters above all, only its owner can open

wsgi_app = "identity.asgi:application"
worker_class = "identity.server.worker.Worker"
logger_class = "identity.server.logs.ServerLog"
_HOST = f"[{deployment.BIND}]" if ":" in deployment.BIND else deployment.BIND
bind = [f"{_HOST}:{deployment.PORT}"]
# Here a node answers its operators also while it accepts no other connection. Only its own user and
# root open the folder; a name of more than 107 bytes is none for a socket.
_HEALTH = str(deployment.VAR_DIR / f"health-{deployment.PORT}.sock")
if len(os.fsencode(_HEALTH)) < 108:
    bind.append(f"unix:{_HEALTH}")
umask = 0o077  # of that socket
workers = deployment.WEB_PROCESSES
preload_app = True
backlog = BACKLOG
# A process whose event loop does not turn for so many seconds is replaced.
timeout = 10
# SIGTERM: finish what was accepted; identity/server/worker.py ends before this.
graceful_timeout = 20
control_socket_disable = True
_MEMORY = Path("/dev/shm")  # noqa: S108 - gunicorn makes a file there that has no name
if _MEMORY.is_dir():  # a sign of life must not wait for a disk
    worker_tmp_dir = str(_MEMORY)


def on_starting(server: Any) -> None:
    """The service is loaded and nothing listens: whatever it cannot work with ends the start."""
    if found := list(faults()):
        sys.exit("\n".join(found))


def when_ready(server: Any) -> None:
    """A stop begins here: new handshakes are dropped, and the queue is emptied.

    That also holds while a process is starting. SIGHUP stops as well: what was loaded before the
    fork cannot be loaded again.
    """

    def stop(number: int, frame: object) -> None:
        refuse_handshakes(server.LISTENERS)
        server.signal(signal.SIGTERM, frame)

    hold_signals_over_forks()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)


def child_exit(server: Any, worker: Any) -> None:
    """A process has ended, whatever the reason."""
    # Only here: before Django is loaded it would not count in files (identity/metrics_files.py).
    from prometheus_client.multiprocess import mark_process_dead

    counts.release_slot(worker.slot)
    mark_process_dead(worker.pid)
