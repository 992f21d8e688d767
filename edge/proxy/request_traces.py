"""Spans of a share of the requests that are forwarded, recorded where the access log writes their lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Final

from common.metrics import Family
from common.tracing import Span, Tracer

if TYPE_CHECKING:
    from edge.http.error_responses import ErrorResponse
    from edge.http.request import RequestHead
    from edge.proxy.access_log import AccessLog
    from edge.proxy.exchange import Exchange
    from edge.proxy.log_lines import LoggedConnection

_TRACEPARENT: Final = re.compile(
    rb"\r\ntraceparent:[ \t]*+([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})[ \t]*+(?=\r|\Z)", re.IGNORECASE
)


class RequestTraces:
    """Stands in the place of the access log, and passes everything on to it where there is one."""

    def __init__(self, tracer: Tracer, log: AccessLog | None, share: float, random: Callable[[], float]) -> None:
        self._tracer = tracer
        self._log = log
        self._share = share
        self._random = random

    def write(
        self,
        connection: LoggedConnection,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> None:
        """Write the request's line, and record its span if it is in the share."""
        if self._log is not None:
            self._log.write(connection, status, request_id, head, bytes_down, exchange, refusal)
        if exchange is not None and self._random() < self._share:
            self._tracer.record(_span(exchange, status, request_id))

    def flush(self) -> None:
        """Have the lines so far written."""
        if self._log is not None:
            self._log.flush()

    def close(self) -> None:
        """Write and export what is there."""
        if self._log is not None:
            self._log.close()
        self._tracer.close()

    def families(self) -> list[Family]:
        """Return the log's metrics."""
        return [] if self._log is None else self._log.families()


def _span(exchange: Exchange, status: int, request_id: str) -> Span:
    head, route = exchange.head, exchange.route
    stated = _TRACEPARENT.search(head.kept)
    seconds = exchange.ended_at - exchange.started_at
    method = head.method.decode()
    return Span(
        name=method,
        began=time() - seconds,
        seconds=seconds,
        request_id=request_id,
        traceparent=None if stated is None else stated[1].decode(),
        has_failed=status >= 500 or status == 0,
        attributes={
            "http.request.method": method,
            "http.response.status_code": status,
            "server.address": head.fields.host,
            "frontage.application": route.application_id,
        },
    )
