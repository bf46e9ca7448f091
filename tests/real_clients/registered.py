"""What is registered at the running service for third-party clients, one for each way to log in."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from tests.client_auth.key_erp import KeyPair, new_pair
from tests.introspection.api import claims_of
from tests.servers.service import Service

ROB = "202001234567"
PERMISSION = "documents:submit"
SECRET_METHODS = ("client_secret_post", "client_secret_basic")
ALGORITHMS = ("ES256", "PS256", "EdDSA")
# Each way to log in, as a test names it.
WAYS = (*SECRET_METHODS, *ALGORITHMS)
_NUMBERS = count(1)  # of what is registered: test modules share the service


@dataclass(frozen=True)
class Client:
    """One client; `pair` is its key if it has no secret."""

    client_id: str
    method: str
    client_secret: str = field(default="", repr=False)
    pair: KeyPair | None = field(default=None, repr=False)


@dataclass
class Registered:
    """An intermediary, whom it may act for, and a protected API."""

    service: Service
    folder: Path
    clients: dict[str, Client] = field(default_factory=dict)

    def __post_init__(self) -> None:
        number, manage = next(_NUMBERS), self.service.manage
        self.tin, represented = f"C31{number:08}", f"C32{number:08}"
        self.represented = f"{represented}:{ROB}"
        self.api_name = f"Third parties {number}"
        manage("register_taxpayer", self.tin, "--name", "Agent")
        manage("register_intermediary", self.tin)
        manage("register_taxpayer", represented, "--rob", ROB, "--name", "Represented")
        parties = ("--taxpayer", self.represented, "--intermediary", self.tin)
        manage("grant_permission", *parties, "--permission", PERMISSION)

    @cached_property
    def api(self) -> dict[str, str]:
        new = ("register_protected_api", self.api_name, "--audience", "InvoicingAPI")
        issued = self.service.manage(*new)
        return {member: issued[member] for member in ("client_id", "client_secret")}

    @cached_property
    def metadata(self) -> dict[str, Any]:
        answer = httpx.get(f"{self.service.url}/.well-known/oauth-authorization-server")
        metadata: dict[str, Any] = answer.raise_for_status().json()
        return metadata

    def client(self, way: str) -> Client:
        if way not in self.clients:
            self.clients[way] = self.new_client(way)
        return self.clients[way]

    def claims_on_behalf(self, token: str, client: Client) -> dict[str, Any]:
        """Those of a token; fails unless it is for this client and the represented taxpayer."""
        claims = claims_of(token)
        assert (claims["sub"], claims["client_id"]) == (self.represented, client.client_id)
        assert (claims["act"], claims["permissions"]) == ({"sub": self.tin}, [PERMISSION])
        return claims

    def new_client(self, way: str) -> Client:
        name = f"{way} {next(_NUMBERS)}"
        new = ("issue_credentials", self.tin, "--name", name, "--logins-per-minute", "0")
        if way in SECRET_METHODS:
            issued = self.service.manage(*new)
            return Client(issued["client_id"], way, client_secret=issued["client_secret"])
        pair = new_pair(way)
        file = self.folder / f"{pair.kid}.json"
        file.write_text(json.dumps(pair.public_jwk))
        issued = self.service.manage(*new, "--jwks", str(file))
        return Client(issued["client_id"], "private_key_jwt", pair=pair)
