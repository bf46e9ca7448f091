"""Who is measured: this service and its peers, a module for each.

A peer that is no Python program (node's oidc-provider, say) is one more module: it registers its
clients in a database from `session.copy_of`, and runs its command by `servers.start`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from bench.clients import Population
from bench.load import Expected
from bench.servers import Server
from bench.session import Session

Start = Callable[[Session, Population], Server]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a module of this folder defines. Candidates with the same `start` share a server."""

    name: str
    start: Start  # a server with the clients of this population
    request: Callable[[Population, Random], bytes]  # of a random client
    expected: Expected
    connections: tuple[int, ...] = (16,)
