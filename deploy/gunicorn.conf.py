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
from identity.server.listener import refuse_handshakes
from identity.server.worker import hold_signals_over_forks

for line in UNKNOWN_SETTINGS:
    print(line, file=sys.stderr)  # noqa: T201 - nothing is logged before the server has begun

os.umask(0o077)  # what the server writes, counters above all, only its owner can open

wsgi_app = "identity.asgi:application"
worker_class = "identity.server.worker.Worker"
logger_class = "identity.server.logs.ServerLog"
bind = (
    f"[{deployment.BIND}]:{deployment.PORT}"
    if ":" in deployment.BIND
    else (f"{deployment.BIND}:{deployment.PORT}")
)
workers = deployment.WEB_PROCESSES
preload_app = True
# Many clients log in again at the full hour: such a burst waits in this queue.
backlog = 2048
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
    """A stop begins here: nobody new gets into the queue, and the queue is emptied.

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
    counts.release_slot(worker.slot)
