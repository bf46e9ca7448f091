"""Failed authentications beside the login, counted with failed logins (contract 1, Limits).

A right secret is always accepted: what is denied without a query is the very pair that was denied a
moment ago, from the same address, at the same operation.
"""

from collections.abc import Generator, Hashable

from taxpayers.rules import Refused
from tokens.calls import FailedAuthentication
from tokens.client_auth.methods import CheckedCredentials
from tokens.operations.denials import check_denied
from tokens.operations.node import Node
from tokens.operations.recording import buckets
from tokens.rate_limits.backoff import counted_address
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.refusals.table import REFUSALS
from tokens.request.arrival import Arrival


def check_failures(node: Node, arrival: Arrival, sent: CheckedCredentials, operation: str) -> None:
    """Raises RateLimited if these credentials were denied a moment ago: no query and no write.

    `operation` is what was called: a secret that is wrong there may be right at another one.
    """
    check_denied(node, arrival, _key(arrival, sent, operation), ThrottleCause.FAILURES)


def count_failure(
    node: Node, arrival: Arrival, sent: CheckedCredentials, operation: str, refused: Refused
) -> Generator[FailedAuthentication, Throttle | None, None]:
    """The step that counts a refusal, if it is a failure; RateLimited if its caller must wait."""
    if not REFUSALS[refused.reason].counts_as_failure:
        return
    address = arrival.source_address
    throttle = yield FailedAuthentication(
        buckets().of_pair(sent.client_id, address), buckets().of_address(address)
    )
    if throttle is not None:
        node.denials.remember(_key(arrival, sent, operation), throttle)
        raise RateLimited(throttle, ThrottleCause.FAILURES)


def _key(arrival: Arrival, sent: CheckedCredentials, operation: str) -> Hashable:
    address = counted_address(arrival.source_address)
    return ThrottleCause.FAILURES, operation, sent.client_id, sent.denial_key, address
