"""How spans are made and sent: by OTLP over HTTP, in a separate thread. No login waits for it.

An error is named only by its type: its text and its traceback may hold what a client has sent.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_TRACES_SAMPLER
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import NoOpTracer, Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tokens.request.proxies import TrustedProxies

logger = logging.getLogger("identity.traces")

# At the end of the process, after its last answer: identity/server/worker.py leaves so much time.
_FLUSH_SECONDS = 1.0
_PAUSE_SECONDS = 0.02


class Export:
    """`tracer` makes the spans of this process; before `begin` it makes none."""

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


@contextmanager
def span_of(
    tracer: Tracer,
    name: str,
    *,
    kind: SpanKind,
    attributes: Mapping[str, str | int],
    parent: Context | None = None,
) -> Iterator[Span]:
    """The current span as long as the block; without `parent` a child of the one before."""
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


_propagator = TraceContextTextMapPropagator()
_HEADERS = (b"traceparent", b"tracestate")


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
