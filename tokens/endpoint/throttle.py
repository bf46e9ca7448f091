"""Refuse before any work: the denials that this process remembers (contract 1, Limits)."""

from collections.abc import Hashable
from dataclasses import replace

from taxpayers.rules import Refused
from tokens.client_auth.authenticated import AuthenticatedClient
from tokens.endpoint.arrival import Arrival
from tokens.endpoint.node import Node
from tokens.endpoint.request import TokenRequest
from tokens.rate_limits.throttle import Throttle
from tokens.refusals.table import ProtocolReason


class RateLimited(Refused):
    """A login beyond a limit: nothing is recorded."""

    def __init__(self, throttle: Throttle) -> None:
        super().__init__(ProtocolReason.RATE_LIMITED)
        self.throttle = throttle


def check_throttle(node: Node, arrival: Arrival, asked: TokenRequest) -> None:
    """Raises RateLimited if this very pair was denied a moment ago: no query and no write."""
    for key in _keys(arrival, asked):
        throttle = node.denials.find(key, arrival.at)
        if throttle is not None:
            raise RateLimited(throttle)


def throttled(
    node: Node,
    arrival: Arrival,
    asked: TokenRequest,
    client: AuthenticatedClient | None,
    throttle: Throttle,
) -> RateLimited:
    """The refusal of a login that a limit denied; it is remembered until the denial ends."""
    expires_at = client.secret.expires_at if client else None
    throttle = replace(throttle, secret_expires_at=expires_at)
    pair, pair_from_here = _keys(arrival, asked)
    node.denials.remember(pair if throttle.limit else pair_from_here, throttle)
    return RateLimited(throttle)


def _keys(arrival: Arrival, asked: TokenRequest) -> tuple[Hashable, Hashable]:
    """What a denial is remembered by: the very pair, and for failures also where it came from."""
    pair = (asked.client_id, asked.credentials.hashed_secret)
    return pair, (*pair, arrival.source_address)
