"""Who is measured: this service and its peers, a module for each."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from bench.clients import Population, Role
from bench.load import Expected
from bench.servers import Server
from bench.session import Session

Start = Callable[[Session, Population], Server]


class Missing(Exception):
    """This machine lacks what a peer needs; the message says what."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a module of this folder defines. Candidates with the same `start` share a server."""

    name: str
    start: Start  # a server with the clients of this population; may raise Missing
    request: Callable[[Population, int, Random], bytes]  # of the client with this number
    expected: Expected
    connections: tuple[int, ...] = (16,)
    role: Role = Role.TAXPAYER  # of the clients whose numbers it gets
    # Whether its clients log in once before they are measured, because a node remembers them; or
    # are such as never logged in since the server started.
    meets_clients: bool = False
    is_first_login: bool = False
    prepare: Callable[[Server, Population], None] | None = None  # before the first request
