"""What is answered at the paths of clients and protected APIs that prove who they are.

Each is a list of steps; the event loop (`tokens.endpoint.asgi`) and Django's view
(`tokens.endpoint.view`) run them all in the same way.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tokens.access_tokens.introspection import introspect, report_introspection
from tokens.access_tokens.revocation import report_revocation, revoke
from tokens.endpoint.arrival import Arrival
from tokens.endpoint.login import EndedLogin, log_in
from tokens.endpoint.node import Node
from tokens.endpoint.recording import client_id_as_sent
from tokens.endpoint.request import RawTokenRequest
from tokens.metrics import count_login
from tokens.steps import StepsTo

logger = logging.getLogger("tokens.login")


@dataclass(frozen=True, slots=True)
class Operation:
    """How a request is answered, and how its end is counted and logged, with its duration."""

    begin: Callable[[Node, Arrival, RawTokenRequest], StepsTo[Any]]
    report: Callable[[Arrival, Any, float], None]


def report_login(arrival: Arrival, ended: EndedLogin, seconds: float) -> None:
    """Counts and logs a login that was answered after so long."""
    count_login(ended.outcome, seconds, ended.throttled_for)
    logger.info(
        "login",
        extra={
            "reference": str(arrival.id),
            "outcome": ended.outcome,
            "client_id": client_id_as_sent(ended.sent),
            "source_address": arrival.source_address,
            "milliseconds": round(seconds * 1000, 2),
        },
    )


OPERATIONS: Mapping[str, Operation] = {
    "/connect/token": Operation(log_in, report_login),
    "/connect/introspect": Operation(introspect, report_introspection),
    "/connect/revocation": Operation(revoke, report_revocation),
}
