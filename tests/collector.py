"""A collector of OpenTelemetry for tests: receives spans over OTLP/HTTP, in a thread of its own."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass(frozen=True)
class Received:
    """A span; ids in hexadecimal digits."""

    service: str
    name: str
    trace_id: str
    parent_id: str
    has_failed: bool
    attributes: dict[str, Any]
    seconds: float


@dataclass
class Collector:
    endpoint: str = ""
    spans: list[Received] = field(default_factory=list)


@contextmanager
def collector() -> Iterator[Collector]:
    """Run one; the test is skipped where the packages of the extra `otlp` are not installed."""
    messages = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    here = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            here.spans.extend(_read(messages.ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        here.endpoint = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield here
        finally:
            server.shutdown()
            serving.join()


def _read(request: Any) -> Iterator[Received]:
    for each in request.resource_spans:
        service = _attributes(each.resource)["service.name"]
        for span in (span for scope in each.scope_spans for span in scope.spans):
            yield Received(
                service,
                span.name,
                span.trace_id.hex(),
                span.parent_span_id.hex(),
                span.status.code == 2,  # STATUS_CODE_ERROR
                _attributes(span),
                (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
            )


def _attributes(message: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in message.attributes}
