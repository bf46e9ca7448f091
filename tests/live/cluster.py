"""A proxy and the nodes behind it, as tests of the load balancer and of its edges use them."""

import re
import socket
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import httpx
import psycopg

from tests.servers.nginx import HOST, PROXY_SECRET, Balancer, Ports
from tests.servers.service import Service
from tests.servers.wire import read_to_end
from tests.support.answers import assert_shape
from tests.support.erp import FORM, PATH, Erp
from tokens.models import LoginEvent

TIN = "C1000000001"
CLIENT = "127.0.0.2"  # where clients come from: no trusted proxy
STAFF_HOST = {"Host": "staff.id.example.org"}
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass
class Cluster:
    balancer: Balancer
    nodes: list[Service]

    @property
    def ports(self) -> Ports:
        return self.balancer.ports

    def client(self, address: str = CLIENT) -> httpx.Client:
        transport = httpx.HTTPTransport(verify=self.balancer.tls, local_address=address)
        return httpx.Client(base_url=self.ports.https_url, transport=transport, timeout=30)

    def post(self, content: Any, **headers: str) -> httpx.Response:
        with self.client() as client:
            return client.post(PATH, content=content, headers={"Content-Type": FORM, **headers})

    def login(self, erp: Erp, **headers: str) -> httpx.Response:
        return self.post(urlencode(erp.form), **headers)

    def on_the_wire(self, request: bytes) -> bytes:
        with (
            socket.create_connection((HOST, self.ports.https), timeout=10) as plain,
            self.balancer.tls.wrap_socket(plain, server_hostname=HOST) as connection,
        ):
            connection.sendall(request)
            return read_to_end(connection)

    @cached_property
    def erp(self) -> Erp:
        """One without a limit."""
        return self.new_erp(0)

    def new_erp(self, logins_per_minute: int) -> Erp:
        return new_client(self.nodes[-1], "--logins-per-minute", str(logins_per_minute))

    def events(self, erp: Erp) -> dict[str, str]:
        """The address that each recorded token of that client went to, by its reference."""
        with psycopg.connect(self.nodes[-1].environment["DATABASE_URL"]) as connection:
            rows = connection.execute(
                "SELECT id, host(source_address) FROM login_events"
                " WHERE client_id = %s AND reason = ''",
                [erp.client_id],
            )
            return {str(reference): address for reference, address in rows}


def behind(ports: Ports) -> dict[str, str]:
    return {
        "SERVE": "login",
        "ENVIRONMENT": "test",
        "AUTH_URL": ports.https_url,
        "STAFF_URL": f"https://{STAFF_HOST['Host']}:{ports.https}",
        "MTLS_URL": ports.mtls_url,
        "TRUSTED_PROXIES": HOST,
        "PROXY_SECRET": PROXY_SECRET,
    }


# The reason that each text belongs to; there is none where the path is wrong.
_REASONS = {
    "without HTTPS": "insecure_transport",
    "POST only": "method_not_allowed",
    "try again": "temporarily_unavailable",
}


def assert_proxy_answer(answer: httpx.Response, status: int, error: str, says: str) -> None:
    assert answer.status_code == status
    if error != "not_found":
        page = f"/errors/{_REASONS.get(says, 'malformed_request')}"
        assert re.fullmatch(rf'<https://[a-z0-9.:]+{page}>; rel="help"', answer.headers["Link"])
    assert_shape(answer.headers, answer.json(), error, says, _UUID)
    assert len(answer.headers.get_list("correlationId")) == 1
    assert len(answer.headers.get_list("Cache-Control")) == 1


def new_client(node: Service, *options: str, tin: str = TIN) -> Erp:
    node.manage("register_taxpayer", tin, "--name", "Sample")
    issued = node.manage("issue_credentials", tin, "--name", f"ERP {uuid4()}", *options)
    return Erp(issued["client_id"], issued["client_secret"])


def login_at(node: Service, erp: Erp) -> httpx.Response:
    return httpx.post(f"{node.url}{PATH}", data=erp.form, timeout=30)


def is_valid(node: Service, access_token: str) -> bool:
    headers = {"Authorization": f"Bearer {access_token}"}
    answer = httpx.get(f"{node.url}/api/v1/me", headers=headers, timeout=30)
    assert answer.status_code in (200, 401)
    return answer.status_code == 200


def logins(nodes: Sequence[Service], erp: Erp, count: int) -> Counter[int]:
    """The statuses of so many logins, eight at once, at each node in turn."""
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda n: login_at(nodes[n % len(nodes)], erp), range(count))
        return Counter(answer.status_code for answer in answers)


def recorded(node: Service, erp: Erp) -> int:
    return node.run(LoginEvent.objects.filter(client_id=erp.client_id).count)
