"""The step before a login in the test environment: what the clients of the sandbox get.

Most of them are refused by the state that the registry has of them. Here is only what no state can
do: no answer, an error of ours, always too many logins, and a token that lives for a minute.
Each process counts how often an address uses the sandbox: its secrets are public.
"""

from datetime import datetime, timedelta
from functools import cache

from taxpayers.rules import Refused
from taxpayers.sandbox.clients import SandboxName, proved_name
from tokens.lifetime import TOKEN_LIFETIME
from tokens.operations.login import Steps, log_in
from tokens.operations.node import Node
from tokens.operations.recording import buckets
from tokens.operations.stages import TERMS, Terms
from tokens.rate_limits.backoff import Backoff, BucketState
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival
from tokens.request.token_request import RawTokenRequest, TokenRequest
from tokens.system_warnings import add_warnings

# At once enough for every test of an ERP system, then 8,640 a day without an end.
SANDBOX_BACKOFF = Backoff(free=500, cap_seconds=10)


class SandboxAddresses:
    """The logins of each address: one number of a bucket for each, as for rejected requests."""

    def __init__(self) -> None:
        self._states: dict[int, BucketState] = {}

    def count(self, address: str | None, at: datetime) -> Throttle | None:
        """Counts one login; or a Throttle if its address has to wait, then it is not counted."""
        bucket = buckets().of_rejections(address)
        state = self._states.get(bucket)
        if state is not None and state.retry_at > max(at, state.last_at):
            return Throttle(state.retry_at)
        self._states[bucket] = SANDBOX_BACKOFF.next_state(state, at)
        return None


@cache
def sandbox_addresses() -> SandboxAddresses:
    """Those of this process."""
    return SandboxAddresses()


SHORT_LIFETIME = timedelta(seconds=60)
# What the client that is always over its limit is told.
LIMIT, PAUSE = 12, timedelta(seconds=30)
# The end of the secrets of the sandbox, but for those whose end is the point.
NEVER = datetime.fromisoformat("2999-12-31T00:00:00+00:00")

WARNING = {"text": "This is a test of X-System-Warning.", "from": "2999-12-31"}


def log_in_with_sandbox(node: Node, arrival: Arrival, raw: RawTokenRequest) -> Steps:
    """As `log_in`, with the terms of the sandbox for its clients."""
    ended = yield from log_in(node, arrival, raw, sandbox_terms)
    if isinstance(ended.sent, TokenRequest) and _name(ended.sent) == SandboxName.SYSTEM_WARNING:
        add_warnings(ended.answer.headers, [WARNING])
    return ended


def sandbox_terms(arrival: Arrival, asked: TokenRequest) -> Terms:
    """The terms of this client. Raises Refused, before anything is read or written."""
    name = _name(asked)
    if not name:
        return TERMS
    throttle = sandbox_addresses().count(arrival.source_address, arrival.at)
    if throttle is not None:
        raise RateLimited(throttle, ThrottleCause.LOGINS)
    if name in (SandboxName.TEMPORARILY_UNAVAILABLE, SandboxName.SERVER_ERROR):
        raise Refused(ProtocolReason(name))
    if name == SandboxName.RATE_LIMITED:
        throttle = Throttle(arrival.at + PAUSE, LIMIT, NEVER)
        raise RateLimited(throttle, ThrottleCause.LOGINS)
    is_short = name == SandboxName.TOKEN_FOR_A_MINUTE
    # No pauses: its secret may be right and always refused, which a pause would hide; and it may
    # reset its counter, at any process.
    return Terms(SHORT_LIFETIME if is_short else TOKEN_LIFETIME, pauses=False)


def _name(asked: TokenRequest) -> str:
    return proved_name(asked.client_id, asked.credentials.lookup)
