"""One process of the server: gunicorn's worker with uvicorn's event loop, and how it ends."""

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any, cast

import uvloop
from django.conf import settings
from gunicorn.arbiter import Arbiter
from uvicorn.config import Config
from uvicorn.server import Server
from uvicorn_worker import UvicornWorker

from identity.server.connection import Connection
from identity.server.fair_share import counts
from identity.server.listener import Listener, refuse_handshakes
from identity.server.overload import StartQueue

logger = logging.getLogger("identity.server")

_TICK_SECONDS = 0.5
_ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})
# From SIGTERM to the end; `graceful_timeout` of deploy/gunicorn.conf.py is a little more.
_STOP_SECONDS = 17.0
_CANCEL_SECONDS = 1.0


def hold_signals_over_forks() -> None:
    """From now on a new process gets a signal that ends it only when it has its own handlers.

    Just after the fork it has those of the master, which put the signal into a queue that is
    not read there; the stop would then wait for `graceful_timeout` and kill it.
    """
    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING),
        after_in_parent=_release_signals,
    )


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


class Connections(set[Any]):
    """Those of this process; their number is published to the other processes."""

    def __init__(self, slot: int) -> None:
        super().__init__()
        self.slot = slot

    def add(self, connection: Any) -> None:
        super().add(connection)
        counts.publish(self.slot, len(self))

    def discard(self, connection: Any) -> None:
        super().discard(connection)
        counts.publish(self.slot, len(self))


def _enforce_deadlines(connection: Connection, now: float) -> None:
    """Whatever goes wrong with one connection ends that one, and no deadline of the others."""
    try:
        connection.enforce_deadlines(now)
    except Exception:
        logger.exception("connection aborted: its deadlines cannot be enforced")
        connection.abort()


class Process(Server):
    """uvicorn's server with our listener, deadlines, and an end that loses no request."""

    def __init__(self, config: Config, slot: int) -> None:
        super().__init__(config)
        self.slot, self.master = slot, os.getppid()
        self.sockets: list[socket.socket] = []
        self.server_state.connections = Connections(slot)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            sys.exit(Arbiter.WORKER_BOOT_ERROR)
        await self.on_tick(0)  # the header Date is there for the first answer
        self.sockets = list(sockets or ())
        self.start_queue = StartQueue(asyncio.get_running_loop(), self.server_state.tasks)
        self.listeners = [
            Listener(sock, self._connection, counts, self.slot) for sock in self.sockets
        ]
        closing = cast("Any", self.config.app).closing(self._doors(), self._say_goodbye)
        self.deadlines = asyncio.create_task(self._enforce_deadlines())
        self.closing = asyncio.create_task(closing.run())
        self.started = True

    def _doors(self) -> list[Listener]:
        """Those that are closed while only this node has a fault; staff can always ask theirs."""
        return [one for one in self.listeners if one.is_public and settings.SERVE != "staff"]

    def _say_goodbye(self) -> None:
        """Each connection may bring one more request before it ends."""
        for connection in tuple(self.server_state.connections):
            connection.shutdown()

    def _connection(self) -> Connection:
        return Connection(self.start_queue, self.config, self.server_state, self.lifespan.state)

    async def on_tick(self, counter: int) -> bool:
        """Uvicorn measures the time between signs of life by the clock, which may be set back.

        Without its master nothing stops this process, and it holds the port: it ends.
        """
        self.last_notified = min(self.last_notified, time.time())
        if os.getppid() != self.master and not self.should_exit:
            logger.error("the master has ended, and so does this process")
            refuse_handshakes(self.sockets)
            self.should_exit = True
        return await super().on_tick(counter)

    async def _enforce_deadlines(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            for connection in tuple(self.server_state.connections):
                _enforce_deadlines(cast("Connection", connection), loop.time())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        counts.withdraw(self.slot)
        self.closing.cancel()  # or it opens again
        self._say_goodbye()
        await asyncio.gather(*(listener.close() for listener in self.listeners))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._until_idle()
        for task in tuple(self.server_state.tasks):
            task.cancel()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_CANCEL_SECONDS)
        self.deadlines.cancel()
        await self.lifespan.shutdown()

    async def _until_idle(self) -> None:
        while (self.server_state.connections or self.server_state.tasks) and not self.force_exit:
            for connection in tuple(self.server_state.connections):
                if not connection.is_stopping:  # type: ignore[union-attr]
                    connection.shutdown()
            await self.on_tick(0)  # the master must not take this process for one that hangs
            await asyncio.sleep(0.05)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM ends in order, also when the terminal goes; SIGINT and SIGQUIT end at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop)
        for number in (signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, self._stop_at_once)
        yield

    def _stop(self) -> None:
        self.should_exit = True

    def _stop_at_once(self) -> None:
        self.should_exit = self.force_exit = True


class Worker(UvicornWorker):
    """What gunicorn starts after the fork, and again if it dies or hangs."""

    CONFIG_KWARGS: dict[str, Any] = {
        "http": Connection,
        "loop": "uvloop",
        "ws": "none",
        "interface": "asgi3",
        "lifespan": "on",
        "proxy_headers": False,  # which proxies are trusted: tokens/request/proxies.py
        "server_header": False,
        "access_log": False,  # the service logs its own requests, without a secret in them
        "timeout_notify": 1,
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.slot = counts.take_slot()  # in the parent, before the fork
        for name in ("uvicorn.error", "uvicorn.access"):  # to our handler, as JSON
            logging.getLogger(name).propagate = True
            logging.getLogger(name).handlers = []
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)

    def init_signals(self) -> None:
        """Until it serves, a signal ends this process at once."""
        super().init_signals()
        _release_signals()

    def run(self) -> None:
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.config.app = self.wsgi
        server = Process(self.config, self.slot)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve(sockets=self.sockets))
