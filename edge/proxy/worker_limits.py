"""What bounds a worker: sizes of requests, seconds without progress, connections. The only reader of these settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.settings import Settings
from edge.http.request import HeadLimits
from edge.proxy.exchange_context import Timeouts
from edge.transport.connection_limits import room_for_connections

TICK_SECONDS: Final = 0.5
"""Deadlines are checked once a tick, so each is met up to a tick late; later, where thousands are due at once."""

LAST_REQUEST_SECONDS: Final = 1.0
"""What an idle client has for one more request, once the worker ends."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The bounds of a worker; reasons for the defaults stand in `common.settings`.

    Idle seconds: between requests, and of a connection to an origin; `head_seconds`: for a whole head, or PROXY header,
    from the first byte.
    """

    head: HeadLimits
    max_body_bytes: int | None
    upload_buffer_bytes: int
    head_seconds: float
    idle_seconds: float
    exchange: Timeouts
    client_connections: int
    connections_per_client: int
    connect_seconds: float
    origin_connections: int
    origin_waiters: int
    origin_idle_seconds: float
    breaker_failures: int
    breaker_pause_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> WorkerLimits:
        """Return the settings' bounds.

        Client connections are also bounded by the descriptors that the process may open.
        """
        return cls(
            head=HeadLimits(settings.edge_max_fields, settings.edge_max_head_bytes, settings.edge_max_target_bytes),
            max_body_bytes=settings.edge_max_body_bytes,
            upload_buffer_bytes=settings.edge_upload_buffer_bytes,
            head_seconds=settings.edge_head_timeout_seconds,
            idle_seconds=settings.edge_idle_timeout_seconds,
            exchange=Timeouts(
                # The connector gives up by itself with a reason; waiting for a lease is bounded by twice that.
                connect=2 * settings.edge_connect_timeout_seconds + TICK_SECONDS,
                origin=settings.edge_origin_timeout_seconds,
                body=settings.edge_body_timeout_seconds,
                tunnel=settings.edge_tunnel_timeout_seconds,
            ),
            client_connections=min(settings.edge_max_connections, room_for_connections()),
            connections_per_client=settings.edge_max_connections_per_address,
            connect_seconds=settings.edge_connect_timeout_seconds,
            origin_connections=settings.edge_origin_connections,
            origin_waiters=settings.edge_origin_waiters,
            origin_idle_seconds=settings.edge_origin_idle_seconds,
            breaker_failures=settings.edge_breaker_failures,
            breaker_pause_seconds=settings.edge_breaker_max_pause_seconds,
        )
