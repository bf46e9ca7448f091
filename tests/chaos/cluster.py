"""What the drill breaks: two login nodes behind nginx, and PostgreSQL with a synchronous standby.

Each node reaches the database through a separate proxy, which stands for its network and for the
address that moves to the standby when that is promoted.
"""

import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.chaos.answers import Answer
from tests.chaos.callers import Caller, Population, register
from tests.chaos.load import SILENCE_SECONDS, log_in
from tests.servers.nginx import HOST, Balancer, free_ports, start_balancer
from tests.servers.postgres import Postgres, postgres_user, start_postgres, start_standby
from tests.servers.processes import (
    NotAvailable,
    children_of,
    kill_group,
    new_folder,
    stop_process,
)
from tests.servers.service import Service, manage, service_environment, start_service
from tests.servers.small_disk import SmallDisk, mount_small_disk
from tests.servers.tcp_proxy import TcpProxy

DATABASE = "identity"
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_connections": "80",
    "max_wal_size": "96MB",
    "min_wal_size": "32MB",
    # Logins wait for the standby: 5 s, the default, would be the pause after each restart.
    "wal_retrieve_retry_interval": "200ms",
}
DISK_MEGABYTES = 400
_FOLLOWS_WITHIN_SECONDS = 20.0


@dataclass
class Node:
    """A login node, as its supervisor sees it."""

    door: TcpProxy  # its way to the database
    service: Service

    @property
    def workers(self) -> list[int]:
        return children_of(self.service.pid)

    @property
    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.service.url}/health/ready", timeout=3).status_code == 200
        except httpx.TransportError:
            return False

    def stop_in_order(self) -> int:
        """SIGTERM; the exit code."""
        stop_process(self.service.process, signal.SIGTERM)
        return self.service.process.returncode

    def kill(self) -> None:
        """As when the power fails."""
        kill_group(self.service.pid)
        self.service.process.wait(10)

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """What a supervisor does when it has ended; in another environment, if one is given."""
        chosen = environment or self.service.environment
        self.service = start_service(chosen, self.service.log_file)


@dataclass
class Cluster:
    """Everything that runs, and who logs in."""

    folder: Path
    primary: Postgres
    standby: Postgres
    disk: SmallDisk | None  # of the first primary
    no_disk: str  # why there is none
    nodes: list[Node]
    balancer: Balancer
    population: Population

    @property
    def database_url(self) -> str:
        return self.primary.url(DATABASE)

    def manage(self, *arguments: str) -> Any:
        """What `manage.py ARGUMENTS --json` answers."""
        return self.nodes[0].service.manage(*arguments)

    def connect(self) -> psycopg.Connection[Any]:
        """To the primary, as its superuser."""
        return psycopg.connect(
            self.database_url, autocommit=True, connect_timeout=5, application_name="drill"
        )

    def issued(self) -> frozenset[str]:
        """The ids of the tokens that have a login event."""
        with self.connect() as connection:
            rows = connection.execute("SELECT id FROM login_events WHERE reason = ''").fetchall()
        return frozenset(str(row[0]) for row in rows)

    def connection_of(self, caller: Caller) -> HTTPConnection:
        """To the proxy, from the address of the caller; opened by its first request."""
        return HTTPSConnection(
            HOST,
            self.balancer.ports.https,
            timeout=SILENCE_SECONDS,
            context=self.balancer.tls,
            source_address=(caller.address, 0),
        )

    def probe(self, node: Node, caller: Caller) -> Answer:
        """A login on this very node, past the proxy, whose headers are sent as it would."""
        connection = HTTPConnection(HOST, int(node.service.environment["PORT"]), timeout=10)
        forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": caller.address}
        answer = log_in(caller, connection, {**forwarded, "Connection": "close"})
        connection.close()
        return answer

    def keys_of(self, node: Node) -> list[dict[str, Any]]:
        """The signing keys that one of its processes publishes."""
        answer = httpx.get(f"{node.service.url}/.well-known/jwks.json", timeout=10)
        keys: list[dict[str, Any]] = answer.json()["keys"]
        return keys

    def follow_synchronously(self) -> None:
        """Each commit waits for the standby from now on."""
        self.primary.set("synchronous_standby_names", "*")
        deadline = time.monotonic() + _FOLLOWS_WITHIN_SECONDS
        while not self.is_followed():
            if time.monotonic() > deadline:
                raise AssertionError("the standby does not follow the primary")
            time.sleep(0.1)

    def is_followed(self) -> bool:
        with self.connect() as connection:
            rows = connection.execute(
                "SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'"
            ).fetchall()
        return bool(rows)

    def promote_standby(self) -> Postgres:
        """The standby is the primary, and the nodes' new connections lead to it.

        Returns the former primary. Nobody follows the new one: see `add_standby`.
        """
        former, self.primary = self.primary, self.standby
        self.primary.execute("SELECT pg_promote()")
        for node in self.nodes:
            node.door.redirect(self.primary.port)
        return former

    def add_standby(self) -> None:
        """A new standby, instead of the one that was promoted or lost."""
        self.standby = start_standby(self.primary, **SETTINGS)
        self.follow_synchronously()


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Raises NotAvailable where PostgreSQL or nginx is missing."""
    with ExitStack() as stack:
        folder = new_folder("chaos")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        disk, no_disk = _small_disk()
        if disk:
            stack.callback(disk.stop)
        primary = start_postgres(disk.folder if disk else None, **SETTINGS)
        stack.callback(primary.stop)
        primary.execute(f"CREATE DATABASE {DATABASE}")
        url = primary.url(DATABASE)
        manage(service_environment(folder, 0, DATABASE_URL=url), "migrate", "-v0")
        ports = free_ports()
        balancer = start_balancer(ports)
        stack.callback(balancer.stop)
        nodes = []
        for number, port in enumerate(ports.nodes):
            door = TcpProxy(primary.port)
            stack.callback(door.stop)
            nodes.append(_start_node(folder / f"node-{number}", port, ports.https_url, door))
            stack.callback(_stop, nodes[-1])
        population = register(nodes[0].service)
        standby = start_standby(primary, **SETTINGS)
        cluster = Cluster(folder, primary, standby, disk, no_disk, nodes, balancer, population)
        stack.callback(_stop_databases, cluster)
        cluster.follow_synchronously()
        yield cluster


def _small_disk() -> tuple[SmallDisk | None, str]:
    try:
        return mount_small_disk("small-disk", DISK_MEGABYTES, postgres_user()), ""
    except NotAvailable as reason:
        return None, str(reason)


def _stop(node: Node) -> None:
    node.service.stop()  # the one that runs by then


def _stop_databases(cluster: Cluster) -> None:
    cluster.primary.stop()
    cluster.standby.stop()


def _start_node(var: Path, port: int, auth_url: str, door: TcpProxy) -> Node:
    var.mkdir()
    environment = service_environment(
        var,
        port,
        SERVE="login",
        AUTH_URL=auth_url,
        TRUSTED_PROXIES=HOST,
        DATABASE_URL=f"postgresql://postgres@127.0.0.1:{door.port}/{DATABASE}",
    )
    return Node(door, start_service(environment, var / "log"))
