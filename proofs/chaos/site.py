"""What every drill has: login nodes behind nginx, all callers that log in, and a database."""

import json
import shutil
import signal
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from typing import Any

import psycopg

from proofs.chaos.answers import Answer
from proofs.chaos.callers import Caller, Population, register
from proofs.chaos.load import SILENCE_SECONDS, log_in
from tests.servers.nginx import HOST, Balancer, free_ports, start_balancer
from tests.servers.processes import kill_group, new_folder, stop_process
from tests.servers.service import Service, manage, service_environment, start_service
from tests.servers.tcp_proxy import TcpProxy

DATABASE = "identity"
OFFLINE_KEY = "offline-block.pem"  # signs files of `block_offline` for all nodes


@dataclass
class Node:
    """A login node, as its supervisor sees it."""

    door: TcpProxy  # its way to the database
    service: Service

    def stop_in_order(self) -> int:
        """SIGTERM; the exit code."""
        stop_process(self.service.process, signal.SIGTERM)
        return self.service.process.returncode

    def kill(self) -> None:
        kill_group(self.service.pid)
        self.service.process.wait(10)

    def stop(self) -> None:
        """The service that runs by then."""
        self.service.stop()

    def start(self) -> None:
        self.service = start_service(self.service.environment, self.service.log_file)


@dataclass
class Site(ABC):
    """Everything that runs, and who logs in; which database it is, each kind of site says."""

    folder: Path
    nodes: list[Node]
    balancer: Balancer
    population: Population

    @property
    @abstractmethod
    def database_url(self) -> str:
        """Of the database as it is now, for its superuser."""

    def manage(self, *arguments: str) -> Any:
        return self.nodes[0].service.manage(*arguments)

    def connect(self) -> psycopg.Connection[Any]:
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


def start_nodes(
    stack: ExitStack, database_port: int, url: str
) -> tuple[Path, list[Node], Balancer, Population]:
    """Two nodes behind nginx, and callers; `url` of the new database has `{port}` for its port."""
    folder = new_folder("chaos")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    directly = service_environment(folder, 0, DATABASE_URL=url.format(port=database_port))
    manage(directly, "migrate", "-v0")
    made = manage(directly, "block_offline", "--new-key", str(folder / OFFLINE_KEY), "--json")
    ports = free_ports()
    balancer = start_balancer(ports)
    stack.callback(balancer.stop)
    settings = {
        "SERVE": "login",
        "AUTH_URL": ports.https_url,
        "ENVIRONMENT": "test",
        "TRUSTED_PROXIES": HOST,
        "OFFLINE_BLOCK_KEYS": json.loads(made)["public_key"],
    }
    nodes = []
    for number, port in enumerate(ports.nodes):
        door, var = TcpProxy(database_port), folder / f"node-{number}"
        stack.callback(door.stop)
        var.mkdir()
        settings["DATABASE_URL"] = url.format(port=door.port)
        environment = service_environment(var, port, **settings)
        nodes.append(Node(door, start_service(environment, var / "log")))
        stack.callback(nodes[-1].stop)
    return folder, nodes, balancer, register(nodes[0].service)
