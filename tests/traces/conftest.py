"""A collector of OpenTelemetry: receives OTLP over HTTP, as one of the vendors does."""

import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage, Status

from tests.servers.processes import stopping


@dataclass(frozen=True)
class Span:
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    is_error: bool
    attributes: dict[str, Any]
    began: int
    ended: int


class Collector:
    """`url` is that of OTEL_EXPORTER_OTLP_ENDPOINT. While `holds` is set it does not answer."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.holds = threading.Event()
        self.released = threading.Event()
        self.held = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if self.holds.is_set():
            self.held += 1
            self.released.wait()
            return
        assert request.path == "/v1/traces"
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self._receive(body)
        request.send_response(200)
        request.send_header("Content-Type", "application/x-protobuf")
        request.end_headers()
        request.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def _receive(self, body: bytes) -> None:
        self.bodies.append(body)
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(_values(of_resource.resource.attributes))
            for scope in of_resource.scope_spans:
                self.spans += map(_span, scope.spans)

    def named(self, name: str) -> list[Span]:
        return [span for span in list(self.spans) if span.name == name]

    def children_of(self, parent: Span) -> list[Span]:
        children = [span for span in list(self.spans) if span.parent == parent.id]
        return sorted(children, key=lambda span: span.began)

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def _span(message: SpanMessage) -> Span:
    return Span(
        name=message.name,
        kind=SpanMessage.SpanKind.Name(message.kind).removeprefix("SPAN_KIND_").lower(),
        trace=message.trace_id.hex(),
        id=message.span_id.hex(),
        parent=message.parent_span_id.hex(),
        is_error=message.status.code == Status.STATUS_CODE_ERROR,
        attributes=_values(message.attributes)
        | {f"event {event.name}": True for event in message.events}
        | ({"description": message.status.message} if message.status.message else {}),
        began=message.start_time_unix_nano,
        ended=message.end_time_unix_nano,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    with stopping(started):
        yield started
