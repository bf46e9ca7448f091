"""A login in the test environment: as every login, but for the clients of the sandbox.

Most of them are refused by the state that the registry has of them. Here is only what no state can
do: no answer, an error of ours, always too many logins, and a token that lives for a minute. The
login of a live service does not know this module.
"""

from datetime import datetime, timedelta

from taxpayers.credentials import hash_secret, is_same_secret
from taxpayers.rules import Refused
from taxpayers.sandbox.clients import CREDENTIALS, SandboxName, sandbox_name
from tokens.calls import FailedLogin, Write
from tokens.operations.login import EndedLogin, Login, Outcome, Steps, log_in_as
from tokens.operations.node import Node
from tokens.operations.recording import counted_call
from tokens.operations.sandbox_addresses import sandbox_addresses
from tokens.rate_limits.quota import Quota
from tokens.rate_limits.throttle import RateLimited, Throttle, ThrottleCause
from tokens.refusals.table import ProtocolReason
from tokens.request.arrival import Arrival
from tokens.request.token_request import RawTokenRequest, TokenRequest
from tokens.system_warnings import add_warnings

SHORT_LIFETIME = timedelta(seconds=60)
# What the client that is always over its limit is told.
LIMIT, PAUSE = 12, timedelta(seconds=30)
# The end of the secrets of the sandbox, but for those whose end is the point.
NEVER = datetime.fromisoformat("2999-12-31T00:00:00+00:00")

WARNING = {"text": "This is a test of X-System-Warning.", "from": "2999-12-31"}


def log_in_with_sandbox(node: Node, arrival: Arrival, raw: RawTokenRequest) -> Steps:
    """As `log_in`."""
    return log_in_as(SandboxLogin, node, arrival, raw)


class SandboxLogin(Login):
    """One login, perhaps of a client of the sandbox that has sent its secret."""

    def __init__(self, node: Node, arrival: Arrival, asked: TokenRequest) -> None:
        super().__init__(node, arrival, asked)
        self.sandbox = _client_of(asked)
        if self.sandbox == SandboxName.TOKEN_FOR_A_MINUTE:
            self.token_lifetime = SHORT_LIFETIME

    def steps(self) -> Steps:
        """As those of every login. Raises Refused, before anything is read or written."""
        if self.sandbox is not None:
            self._check_address()
            self._check_client(self.sandbox)
        return super().steps()

    def _check_address(self) -> None:
        throttle = sandbox_addresses().count(self.arrival.source_address, self.arrival.at)
        if throttle is not None:
            raise RateLimited(throttle, ThrottleCause.LOGINS)

    def _check_client(self, name: SandboxName) -> None:
        if name in (SandboxName.TEMPORARILY_UNAVAILABLE, SandboxName.SERVER_ERROR):
            raise Refused(ProtocolReason(name))
        if name == SandboxName.RATE_LIMITED:
            retry_at = self.arrival.at + PAUSE
            raise RateLimited(Throttle(retry_at, LIMIT, NEVER), ThrottleCause.LOGINS)

    def _call(self, outcome: Outcome) -> Write | None:
        call = super()._call(outcome)
        if self.sandbox is None or self.client is None or not isinstance(call, FailedLogin):
            return call
        # Its secret is right and always refused: pauses after that would hide the refusal.
        return counted_call(self.asked, self.client, call.event)

    def _end(self, outcome: Outcome, quota: Quota | None) -> EndedLogin:
        ended = super()._end(outcome, quota)
        if self.sandbox == SandboxName.SYSTEM_WARNING:
            add_warnings(ended.answer.headers, [WARNING])
        return ended

    def _throttled(self, throttle: Throttle, *, may_succeed: bool = False) -> Refused:
        # Not remembered: the client may reset its counter, at any process.
        may_succeed = may_succeed or self.sandbox is not None
        return super()._throttled(throttle, may_succeed=may_succeed)


def _client_of(asked: TokenRequest) -> SandboxName | None:
    name = sandbox_name(asked.client_id)
    if name is None:
        return None
    expected = hash_secret(CREDENTIALS[name].client_secret)
    return name if is_same_secret(asked.credentials.hashed_secret, expected) else None
