"""Refuse without a query: the denials that this process remembers (contract 1, Limits).

Each is remembered by what would be denied again, so it never meets a right secret within its limit.
"""

from collections.abc import Generator, Hashable

from msgspec.structs import replace

from taxpayers.rules import Refused, RegistryReason
from tokens.calls import RejectedRequest
from tokens.client_auth.authenticated import SECRET_METHODS
from tokens.operations.node import Node
from tokens.operations.stages import Decision, Login
from tokens.rate_limits.backoff import counted_address
from tokens.rate_limits.quota import CounterState, count_login
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.request.arrival import Arrival


def check_throttle(login: Login) -> None:
    """Raises RateLimited if this very pair was denied a moment ago: no query and no write."""
    key = _failure_key(login)  # a hash is in it: made once
    check_denied(login.node, login.arrival, key[:2])
    check_denied(login.node, login.arrival, key)


def check_limit(login: Login, decision: Decision) -> None:
    """Raises RateLimited if a client that has proved itself has no login left, by what was read.

    By what this process remembers, if the registry was not read and the client signs each login.
    """
    client, reading = decision.client, decision.reading
    if client is None:
        return
    if reading.counter is None:
        if client.method not in SECRET_METHODS:
            check_denied(login.node, login.arrival, _limit_key(login))
        return
    limit = client.client.logins_per_minute
    quota = count_login(CounterState(*reading.counter), limit, reading.at)
    if isinstance(quota, Throttle):
        raise throttled(login, decision, quota)


def throttled(login: Login, decision: Decision, throttle: Throttle) -> RateLimited:
    """The refusal of a login that a limit denied; it is remembered until the denial ends.

    Not if the same login may succeed before that: the secret is right, and its networks change.
    """
    client, outcome = decision.client, decision.outcome
    if client is not None and client.method in SECRET_METHODS:
        throttle = replace(throttle, secret_expires_at=client.credential.expires_at)
    may_succeed = (
        isinstance(outcome, Refused) and outcome.reason == RegistryReason.SOURCE_NETWORK_NOT_ALLOWED
    )
    cause = _cause(throttle)
    if login.terms.pauses and not may_succeed:
        key = _limit_key(login) if throttle.limit else _failure_key(login)
        login.node.denials.remember(key, throttle)
        source = "" if throttle.limit else counted_address(login.arrival.source_address)
        _note(login.node, cause, login.arrival, login.asked.client_id, source)
    return RateLimited(throttle, cause)


def check_rejections(node: Node, arrival: Arrival) -> None:
    """Raises RateLimited if the address of a request that is refused already has to wait."""
    check_denied(node, arrival, _rejection_key(arrival), ThrottleCause.REJECTIONS)


def record_rejection(
    node: Node, arrival: Arrival, request: RejectedRequest
) -> Generator[RejectedRequest, Throttle | None, None]:
    """The step that records a request that is refused already, or raises RateLimited."""
    throttle = yield request
    if throttle is not None:
        node.denials.remember(_rejection_key(arrival), throttle)
        source = counted_address(arrival.source_address)
        _note(node, ThrottleCause.REJECTIONS, arrival, "", source)
        raise RateLimited(throttle, ThrottleCause.REJECTIONS)


def _note(node: Node, cause: ThrottleCause, arrival: Arrival, client_id: str, source: str) -> None:
    node.denied_callers.note(cause, client_id, source, arrival.at, arrival.id)


def _cause(throttle: Throttle) -> ThrottleCause:
    return ThrottleCause.LOGINS if throttle.limit else ThrottleCause.FAILURES


def check_denied(
    node: Node, arrival: Arrival, key: Hashable, cause: ThrottleCause | None = None
) -> None:
    """Raises RateLimited if this is remembered; `cause`: None for that of a login."""
    throttle = node.denials.find(key, arrival.at)
    if throttle is not None:
        raise RateLimited(throttle, cause or _cause(throttle))


def _limit_key(login: Login) -> Hashable:
    """What the denial of a client over its limit is remembered by: its secret, or its key.

    The name of a key proves nothing, so it is never looked for before the signature was verified.
    """
    return login.asked.client_id, login.asked.credentials.lookup


def _failure_key(login: Login) -> tuple[str, str, str]:
    """What the denial of a failure is remembered by: what was sent, and where it came from."""
    asked, address = login.asked, login.arrival.source_address
    return asked.client_id, asked.credentials.denial_key, counted_address(address)


def _rejection_key(arrival: Arrival) -> Hashable:
    """What the denial of rejected requests is remembered by: where they came from."""
    return ThrottleCause.REJECTIONS, counted_address(arrival.source_address)
