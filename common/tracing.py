"""Spans of finished work, for a collector of OpenTelemetry; none are made unless OTLP_ENDPOINT is set.

A span is recorded when its work is over, so that nothing is carried through the work. What one request caused is one
trace: its id is the caller's `traceparent` (W3C Trace Context) where there is one, and follows from the request id
otherwise, which orders, deliveries and batches keep. The packages of OpenTelemetry are an extra (`otlp`), loaded here
only where spans are exported (`common.otlp`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol, cast

from common.errors import OperatorError
from common.settings import Settings


@dataclass(frozen=True, slots=True)
class Span:
    """Work that is over. `began` is in unix seconds. `is_request`: a client waited for it."""

    name: str
    began: float
    seconds: float
    request_id: str | None = None
    traceparent: str | None = None
    is_request: bool = True
    has_failed: bool = False
    attributes: Mapping[str, str | int] = field(default_factory=dict)


class Tracer(Protocol):
    """Exports spans in a thread of its own; what a slow collector does not take is dropped."""

    def record(self, span: Span) -> None:
        """Have the span exported."""

    def close(self) -> None:
        """Export what is left, for two seconds at most."""


def open_tracer(settings: Settings, role: str) -> Tracer | None:
    """Return the tracer of a process, closed by the caller; None where spans are not exported.

    Raises: `OperatorError` where the packages are not installed.
    """
    if settings.otlp_endpoint is None:
        return None
    try:
        module = import_module("common.otlp")
    except ModuleNotFoundError as error:
        words = f"FRONTAGE_OTLP_ENDPOINT needs the package {error.name}: pip install 'frontage-server[otlp]'"
        raise OperatorError(words) from error
    return cast("Tracer", module.OtlpTracer(settings.otlp_endpoint, role))
