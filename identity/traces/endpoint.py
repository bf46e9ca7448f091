"""The token endpoint with OpenTelemetry traces: one span for each request, of all that it did.

Chosen in `identity/asgi.py` where OTEL_EXPORTER_OTLP_ENDPOINT is set; elsewhere nothing of this
package is imported. What a span may hold: docs/security.md.
"""

from typing import Any

from django.conf import settings
from django.db import connection
from opentelemetry.trace import SpanKind, Tracer, get_current_span

from identity.traces.export import Export, mark_as_error, parent_of, span_of
from taxpayers.facts.values import FactsQuery
from tokens import calls
from tokens.answers.response import Ended
from tokens.operations.asgi import Message, Receive, Send, TokenEndpoint
from tokens.operations.node import Node
from tokens.operations.paths import OPERATIONS, Operation
from tokens.operations.steps import End, LockedRead, StepsTo, advance, fail
from tokens.request.arrival import Arrival
from tokens.request.proxies import TrustedProxies
from tokens.request.token_request import RawTokenRequest

# Others, which a client may invent, are "_OTHER" (semantic conventions of HTTP).
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
NAMES: dict[type[calls.Call | LockedRead], str] = {
    FactsQuery: "read registry",
    LockedRead: "lock client and read registry",
    calls.TokenQuery: "read token",
    calls.CountedLogin: "record login",
    calls.FailedLogin: "record login",
    calls.RejectedRequest: "record login",
    calls.FailedAuthentication: "record authentication",
    calls.TokenRevocation: "revoke token",
    calls.ApiSecretUse: "record use of secret",
    calls.AssertionUse: "record use of assertion",
    calls.ProofUse: "record use of proof",
    calls.TakeStatusIndex: "take status index",
}

_DATABASE = {"db.system.name": connection.vendor}


class TracedEndpoint(TokenEndpoint):
    """As its parent. A request that is not sampled costs little more than the question."""

    def __init__(self, node: Node | None = None, export: Export | None = None) -> None:
        self._export = export or Export()
        self._proxies = TrustedProxies(settings.TRUSTED_PROXIES)
        traced = {path: _traced(one, self._export) for path, one in OPERATIONS.items()}
        super().__init__(node, traced)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """As its parent, in a span."""
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        path = scope["path"]  # one of OPERATIONS
        with span_of(
            self._export.tracer,
            f"{'HTTP' if method == '_OTHER' else method} {path}",
            parent=parent_of(scope, self._proxies),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "url.path": path, "http.route": path},
        ):
            await super().__call__(scope, receive, send)

    async def open(self) -> None:
        """As its parent; from now on there are spans."""
        self._export.begin()
        await super().open()

    async def close(self) -> None:
        """As its parent, then sends the last spans."""
        await super().close()
        await self._export.end()


def _traced(operation: Operation, export: Export) -> Operation:
    def begin(node: Node, arrival: Arrival, raw: RawTokenRequest) -> StepsTo[Any]:
        steps = operation.begin(node, arrival, raw)
        return _with_spans(steps, export.tracer) if get_current_span().is_recording() else steps

    def report(arrival: Arrival, ended: Ended, seconds: float) -> None:
        operation.report(arrival, ended, seconds)
        span = get_current_span()
        status, outcome = ended.answer.status, str(ended.outcome)
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("identity.outcome", outcome)
        span.set_attribute("identity.correlation_id", arrival.reference)
        if status >= 500:
            mark_as_error(span, outcome)

    return Operation(begin, report)


def _with_spans(steps: StepsTo[End], tracer: Tracer) -> StepsTo[End]:
    """The same steps, with a span for each call of the database; between them this process works.

    A span also has the time for which the call waited: for a connection, or for those before it.
    """
    step = advance(steps)
    while not isinstance(step, Ended):
        try:
            with span_of(tracer, NAMES[type(step)], kind=SpanKind.CLIENT, attributes=_DATABASE):
                result = yield step
        except Exception as error:  # noqa: BLE001 - the steps decide what it means
            step = fail(steps, error)
        else:
            step = advance(steps, result)
    return step
