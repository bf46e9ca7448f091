"""How a span is made here: an error is named only by its type.

Its text and its traceback, which OpenTelemetry would record, may hold what a client has sent.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

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
