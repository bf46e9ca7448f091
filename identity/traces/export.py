"""From this process to the collector: spans go by OTLP over HTTP, in a separate thread.

A login never waits for it. What the queue of the thread has no room for is dropped.
"""

import asyncio
import logging
import os
import threading

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_TRACES_SAMPLER
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import NoOpTracer, Tracer

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
