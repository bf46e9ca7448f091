"""Refuse without a query: the denials that this process remembers (contract 1, Limits).

Each is remembered by what would be denied again, so it never meets a right secret within its limit.
"""

from collections.abc import Generator, Hashable
from dataclasses import replace

from tokens.calls import RejectedRequest
from tokens.client_auth.authenticated import SECRET_METHODS, AuthenticatedClient
from tokens.operations.node import Node
from tokens.rate_limits.buckets import counted_address
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.request.arrival import Arrival
from tokens.request.token_request import TokenRequest


def check_throttle(node: Node, arrival: Arrival, asked: TokenRequest) -> None:
    """Raises RateLimited if this very pair was denied a moment ago: no query and no write."""
    sent = asked.credentials
    for key in ((sent.client_id, sent.digest), _failure_key(arrival, asked)):
        _check(node, arrival, key)


def check_limit(node: Node, arrival: Arrival, asked: TokenRequest) -> None:
    """The same for a client that has proved itself: it signs each login anew."""
    _check(node, arrival, _limit_key(asked))


def throttled(
    node: Node,
    arrival: Arrival,
    asked: TokenRequest,
    client: AuthenticatedClient | None,
    throttle: Throttle,
    *,
    may_succeed: bool = False,
) -> RateLimited:
    """The refusal of a login that a limit denied; it is remembered until the denial ends.

    Not if the same login `may_succeed` before that, once the registry has changed.
    """
    has_secret = client is not None and client.method in SECRET_METHODS
    expires_at = client.secret.expires_at if client and has_secret else None
    throttle = replace(throttle, secret_expires_at=expires_at)
    key = _limit_key(asked) if throttle.limit else _failure_key(arrival, asked)
    if not may_succeed:
        node.denials.remember(key, throttle)
    return RateLimited(throttle, _cause(throttle))


def check_rejections(node: Node, arrival: Arrival) -> None:
    """Raises RateLimited if the address of a request that is refused already has to wait.

    Before anything is made for its record. A right request is always heard.
    """
    throttle = node.denials.find(_rejection_key(arrival), arrival.at)
    if throttle is not None:
        raise RateLimited(throttle, ThrottleCause.REJECTIONS)


def record_rejection(
    node: Node, arrival: Arrival, request: RejectedRequest
) -> Generator[RejectedRequest, Throttle | None, None]:
    """The step that records a request which is refused already, after `check_rejections`.

    Raises RateLimited if its address has to wait.
    """
    throttle = yield request
    if throttle is not None:
        node.denials.remember(_rejection_key(arrival), throttle)
        raise RateLimited(throttle, ThrottleCause.REJECTIONS)


def _cause(throttle: Throttle) -> ThrottleCause:
    return ThrottleCause.LOGINS if throttle.limit else ThrottleCause.FAILURES


def _check(node: Node, arrival: Arrival, key: Hashable) -> None:
    throttle = node.denials.find(key, arrival.at)
    if throttle is not None:
        raise RateLimited(throttle, _cause(throttle))


def _limit_key(asked: TokenRequest) -> Hashable:
    """What the denial of a client over its limit is remembered by: its secret, or its key.

    The name of a key proves nothing, so it is never looked for before the signature was verified.
    """
    return asked.client_id, asked.credentials.hashed_secret


def _rejection_key(arrival: Arrival) -> Hashable:
    """What the denial of rejected requests is remembered by: where they came from."""
    return ThrottleCause.REJECTIONS, counted_address(arrival.source_address)


def _failure_key(arrival: Arrival, asked: TokenRequest) -> Hashable:
    """What the denial of a failure is remembered by: what was sent, and where it came from."""
    return asked.client_id, asked.credentials.digest, counted_address(arrival.source_address)
