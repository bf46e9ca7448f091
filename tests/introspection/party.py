"""A client and a protected API of a service that runs, for tests of processes."""

from typing import Any

import httpx

from tests.introspection.api import INTROSPECT, REVOKE
from tests.servers.service import Service

TIN = "C5000000005"


class Party:
    """A client and a protected API of a running service; tests that share it have other TINs."""

    def __init__(self, service: Service, tin: str = TIN) -> None:
        self.service = service
        name, audience = f"API for {tin}", "InvoicingAPI"
        service.manage("register_taxpayer", tin, "--name", "Company")
        self.erp = service.manage("issue_credentials", tin, "--name", "ERP")
        self.api = service.manage("register_protected_api", name, "--audience", audience)

    def token(self, **headers: str) -> str:
        form = {"grant_type": "client_credentials", **credentials(self.erp)}
        answer = httpx.post(f"{self.service.url}/connect/token", data=form, headers=headers)
        token: str = answer.raise_for_status().json()["access_token"]
        return token

    def introspect(self, token: str, node: Service | None = None) -> dict[str, Any]:
        form = {**credentials(self.api), "token": token}
        answer = httpx.post(f"{(node or self.service).url}{INTROSPECT}", data=form, timeout=20)
        body: dict[str, Any] = answer.raise_for_status().json()
        return body

    def revoke(self, token: str) -> None:
        form = {**credentials(self.erp), "token": token}
        httpx.post(f"{self.service.url}{REVOKE}", data=form).raise_for_status()


def credentials(issued: dict[str, str]) -> dict[str, str]:
    return {name: issued[name] for name in ("client_id", "client_secret")}
