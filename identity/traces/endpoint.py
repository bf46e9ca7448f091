"""The token endpoint with OpenTelemetry traces: one span for each request, of all that it did.

Imported only where OTEL_EXPORTER_OTLP_ENDPOINT is set (`identity/asgi.py`). What a span may hold:
docs/security.md.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_TRACES_SAMPLER
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import NoOpTracer, Span, SpanKind, StatusCode, Tracer, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

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

logger = logging.getLogger("identity.traces")

# At the end of the process, after its last answer: identity/server/worker.py leaves so much time.
_FLUSH_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
# Others, which a client may invent, are "_OTHER" (semantic conventions of HTTP).
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
_propagator = TraceContextTextMapPropagator()
_HEADERS = (b"traceparent", b"tracestate")
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


class Export:
    """Sends spans by OTLP over HTTP, in a separate thread: no login waits for it.

    `tracer` makes the spans of this process; before `begin` it makes none.
    """

    def __init__(self) -> None:
        self.tracer: Tracer = NoOpTracer()
        self._provider: TracerProvider | None = None

    def begin(self) -> None:
        """Starts the thread; after the fork, which no thread survives. Never raises."""
        try:
            processor = BatchSpanProcessor(OTLPSpanExporter())
            self._provider = TracerProvider(_sampler(), _resource(), shutdown_on_exit=False)
            self._provider.add_span_processor(processor)
            self.tracer = self._provider.get_tracer("identity.traces")
        except Exception as error:  # noqa: BLE001 - a wrong OTEL_… variable, and logins go on
            text = "no traces are sent: correct the OTEL_ variables"
            logger.error(text, extra={"error": str(error)})  # noqa: TRY400 - its text says all

    async def end(self) -> None:
        """Sends what is left, for a moment only: a collector that hangs must not delay a stop."""
        if self._provider is None:
            return
        # A daemon: neither the event loop nor the interpreter waits for it.
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        loop = asyncio.get_running_loop()
        until = loop.time() + _FLUSH_SECONDS
        while sending.is_alive() and loop.time() < until:
            await asyncio.sleep(_PAUSE_SECONDS)


def _sampler() -> Sampler | None:
    """What the standard variable asks for; without it a share, unless a parent has decided."""
    if os.environ.get(OTEL_TRACES_SAMPLER):
        return None  # the SDK reads it
    return ParentBased(TraceIdRatioBased(settings.OTEL_TRACES_SAMPLER_ARG))


def _resource() -> Resource:
    known = {  # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first
        "service.name": "token-service",
        "service.version": settings.VERSION,
        "deployment.environment.name": settings.ENVIRONMENT,
    }
    return Resource.create(known).merge(OTELResourceDetector().detect())


class TracedEndpoint(TokenEndpoint):
    """As its parent. A request that is not sampled costs little more than the question."""

    def __init__(self, node: Node | None = None, export: Export | None = None) -> None:
        self._export = export or Export()
        self._proxies = TrustedProxies(settings.TRUSTED_PROXIES)
        traced = {path: _traced(one, self._export) for path, one in OPERATIONS.items()}
        super().__init__(node, traced)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
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
        span.set_attribute("identity.correlation_id", str(arrival.id))
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


@contextmanager
def span_of(
    tracer: Tracer,
    name: str,
    *,
    kind: SpanKind,
    attributes: Mapping[str, str | int],
    parent: Context | None = None,
) -> Iterator[Span]:
    """The current span as long as the block; without `parent` a child of the one before.

    An error is named only by its type: its text and its traceback may hold what a client has sent.
    """
    with tracer.start_as_current_span(
        name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            mark_as_error(span, type(error).__qualname__)
            raise


def mark_as_error(span: Span, kind: str) -> None:
    """`kind` is of few values, and none of a client's."""
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", kind)


def parent_of(scope: Mapping[str, Any], proxies: TrustedProxies) -> Context:
    """The context of the caller's span; an empty one, which begins a trace, if there is none."""
    client = scope.get("client")
    if client is None or not proxies.trust(client[0]):
        return Context()
    carrier: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _HEADERS:
            key, text = name.decode(), value.decode("latin-1")
            # Two of the first are none: with a comma it has no valid form.
            carrier[key] = f"{carrier[key]},{text}" if key in carrier else text
    return _propagator.extract(carrier, Context())
