"""What all exchanges of a worker share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edge.proxy.upload_store import UploadStore
from edge.transport.deferred_work import DeferredWork
from edge.upstream.dispatcher import UpstreamDispatcher


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds without progress, by what is waited for."""

    connect: float
    origin: float  # from the request's head (or its last byte) to the response's head
    body: float
    tunnel: float  # a half-closed one has a body's time


@dataclass(slots=True)
class ExchangeContext:
    """The parts of a worker that its exchanges use. Owned by its `WorkerContext`."""

    dispatcher: UpstreamDispatcher
    uploads: UploadStore
    deferred: DeferredWork
    timeouts: Timeouts
    max_body_bytes: int | None
    time: Callable[[], float]  # monotonic
    date_field: Callable[[], bytes]  # the time of day, as a response states it
    unix_seconds: Callable[[], int]
    states_request_ids: bool  # to clients
    is_draining: bool = False  # each response is to be its connection's last
