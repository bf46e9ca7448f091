"""How a span is made, and which trace it belongs to: an error is named only by its type.

Its text and its traceback, which OpenTelemetry would record, may hold what a client has sent.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tokens.request.proxies import TrustedProxies

Attributes = Mapping[str, str | int]


@contextmanager
def span_of(
    tracer: Tracer,
    name: str,
    *,
    parent: Context | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Attributes | None = None,
) -> Iterator[Span]:
    """The current span as long as the block; without `parent` a child of the one before."""
    with tracer.start_as_current_span(
        name,
        parent,
        kind,
        attributes,
        record_exception=False,
        set_status_on_exception=False,
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
