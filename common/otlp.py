"""Exports spans over OTLP/HTTP by OpenTelemetry's SDK. Loaded by `common.tracing` alone."""

from __future__ import annotations

import hashlib
import logging
import socket
import threading

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from common.builds import read_build
from common.logs import get_logger
from common.tracing import Span

_EXPORT_SECONDS = 2.0
_REQUEST_ID = "frontage.request_id"
_NANOSECONDS = 1_000_000_000

_log = get_logger("common.otlp")


class OtlpTracer:
    """Sends the spans of one process to a collector. `record` only queues: a thread of the SDK exports."""

    def __init__(self, endpoint: str, role: str) -> None:
        """Begin to export to `endpoint`, to which ``/v1/traces`` is added."""
        logging.getLogger("opentelemetry").addHandler(_OurLog())
        resource = Resource.create(
            {
                "service.name": f"frontage-{role}",
                "service.version": str(read_build()),
                "host.name": socket.gethostname(),
            }
        )
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=_EXPORT_SECONDS)
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("frontage")
        self._propagator = TraceContextTextMapPropagator()

    def record(self, span: Span) -> None:
        """Have the span exported."""
        began = int(span.began * _NANOSECONDS)
        attributes = dict(span.attributes)
        if span.request_id is not None:
            attributes[_REQUEST_ID] = span.request_id
        made = self._tracer.start_span(
            span.name,
            context=self._parent_of(span),
            kind=SpanKind.SERVER if span.is_request else SpanKind.INTERNAL,
            attributes=attributes,
            start_time=began,
        )
        if span.has_failed:
            made.set_status(Status(StatusCode.ERROR))
        made.end(end_time=began + int(span.seconds * _NANOSECONDS))

    def close(self) -> None:
        """Export what is left, for two seconds at most."""
        ending = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(_EXPORT_SECONDS)

    def _parent_of(self, span: Span) -> Context:
        """Return the caller's context, or one that follows from the request id, whatever process asks."""
        if span.traceparent is not None:
            context = self._propagator.extract({"traceparent": span.traceparent}, Context())
            if trace.get_current_span(context).get_span_context().is_valid:
                return context
        if span.request_id is None:
            return Context()
        digest = hashlib.sha256(span.request_id.encode()).digest()
        parent = trace.SpanContext(
            trace_id=int.from_bytes(digest[:16]),
            span_id=int.from_bytes(digest[16:24]),
            is_remote=True,
            trace_flags=trace.TraceFlags(trace.TraceFlags.SAMPLED),
        )
        return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())


class _OurLog(logging.Handler):
    """Writes what the SDK logs among our lines: that a collector does not answer."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        _log.warning("spans are not exported", reason=record.getMessage()[:300])
