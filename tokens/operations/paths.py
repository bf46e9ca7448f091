"""What is answered on the event loop, at the paths of callers that prove who they are.

Each is a list of steps, run by `steps` for both doors: the event loop (`asgi`) and `view`.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from taxpayers.redaction import Shown
from tokens.metrics import count_login
from tokens.operations.introspection import introspect, report_introspection
from tokens.operations.login import EndedLogin, Steps, log_in
from tokens.operations.me import PATH as ME, report_nothing, show_token
from tokens.operations.node import Node
from tokens.operations.revocation import report_revocation, revoke
from tokens.operations.sandbox import log_in_with_sandbox
from tokens.operations.steps import StepsTo
from tokens.request.arrival import Arrival
from tokens.request.token_request import RawTokenRequest, TokenRequest
from tokens.system_warnings import add_warnings, faults_of, warnings_for

logger = logging.getLogger("tokens.login")

BeginLogin = Callable[[Node, Arrival, RawTokenRequest], Steps]


@dataclass(frozen=True, slots=True)
class Operation:
    """How a request is answered, and how its end is counted and logged, with its duration."""

    begin: Callable[[Node, Arrival, RawTokenRequest], StepsTo[Any]]
    report: Callable[[Arrival, Any, float], None]


def report_login(arrival: Arrival, ended: EndedLogin, seconds: float) -> None:
    """Counts a login that was answered after so long, and logs it unless a limit refused it."""
    count_login(ended.outcome, seconds, ended.throttled_for)
    if ended.throttled_for is not None:
        return  # a counter only: anyone can send thousands a second
    logger.info(
        "login",
        extra={
            "reference": arrival.reference,
            "outcome": ended.outcome,
            "client_id": Shown(ended.sent.client_id),
            "source_address": arrival.source_address,
            "milliseconds": round(seconds * 1000, 2),
        },
    )


def with_warnings(begin: BeginLogin, warnings: list[dict[str, str]]) -> BeginLogin:
    """The same login, whose answers carry those warnings that concern its request."""

    def begin_warned(node: Node, arrival: Arrival, raw: RawTokenRequest) -> Steps:
        ended = yield from begin(node, arrival, raw)
        if isinstance(ended.sent, TokenRequest):
            add_warnings(ended.answer.headers, warnings_for(ended.sent, warnings))
        return ended

    return begin_warned


# A live service has no sandbox: no step comes before its logins.
_log_in: BeginLogin = log_in_with_sandbox if settings.ENVIRONMENT == "test" else log_in

# A wrong value is named by the checks, without which the server does not start.
if settings.SYSTEM_WARNINGS and not [*faults_of(settings.SYSTEM_WARNINGS)]:
    _log_in = with_warnings(_log_in, settings.SYSTEM_WARNINGS)

OPERATIONS: Mapping[str, Operation] = {
    "/connect/token": Operation(_log_in, report_login),
    "/connect/introspect": Operation(introspect, report_introspection),
    "/connect/revocation": Operation(revoke, report_revocation),
    ME: Operation(show_token, report_nothing),
}
