"""Clients that are registered at a running node, what they get, and what it records."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import httpx

from tests.servers.service import Service
from tests.support.erp import PATH, Erp
from tokens.models import LoginEvent

TIN = "C1000000001"


def new_client(node: Service, *options: str, tin: str = TIN) -> Erp:
    """Another one of this taxpayer."""
    node.manage("register_taxpayer", tin, "--name", "Sample")
    issued = node.manage("issue_credentials", tin, "--name", f"ERP {uuid4()}", *options)
    return Erp(issued["client_id"], issued["client_secret"])


def login_at(node: Service, erp: Erp) -> httpx.Response:
    return httpx.post(f"{node.url}{PATH}", data=erp.form, timeout=30)


def logins(nodes: Sequence[Service], erp: Erp, count: int) -> Counter[int]:
    """The statuses of so many logins, eight at once, at each node in turn."""
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda n: login_at(nodes[n % len(nodes)], erp), range(count))
        return Counter(answer.status_code for answer in answers)


def recorded(node: Service, erp: Erp) -> int:
    return node.run(LoginEvent.objects.filter(client_id=erp.client_id).count)
