"""What all downstream connections of a worker share: routes, leases, limits, counters, and the clock.

Deadlines are swept once a tick instead of being timers, since nearly all are met. This module must not read or
write a client's bytes: that is `edge.downstream`'s.
"""

from __future__ import annotations

import asyncio
from random import random
from typing import Final, Protocol

from common.addresses import own_policy
from common.clock import SystemClock
from common.metrics import Family
from common.secrets import Keyring
from common.settings import Settings
from edge.access_log import OFF, AccessLog
from edge.admission import Admission, room_for_connections
from edge.counters import Counters
from edge.http.dates import date_field
from edge.http.request import Limits, RequestHead
from edge.relay import Exchange, Relay, Timeouts
from edge.replica.awaiting import is_awaiting_certificate
from edge.replica.challenges import ChallengeReader, own_answer
from edge.replica.routes import RouteTable
from edge.routing.decide import Ports
from edge.upstream.breaker import Breaker
from edge.upstream.connector import Connector
from edge.upstream.leases import LeaseDesk
from edge.upstream.pool import Pool
from edge.upstream.resolution import OriginResolver

TICK_SECONDS: Final = 0.5


class ReplicaView(ChallengeReader, Protocol):
    def generation(self) -> int: ...


class Connection(Protocol):
    """A downstream connection, as far as whoever keeps them all must know it."""

    deadline: float  # by `Serving.now`
    exchange: Exchange | None

    def on_deadline(self) -> None: ...
    def look_after_client(self) -> None: ...
    def expect_last_request(self) -> None: ...
    def abort(self) -> None: ...


class Serving:
    """One a worker: created by its composition root, closed by it; every `Downstream` refers to it."""

    def __init__(
        self, settings: Settings, reader: ReplicaView, keyring: Keyring, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.loop = loop
        self.limits = Limits(settings.edge_max_fields, settings.edge_max_head_bytes, settings.edge_max_target_bytes)
        self.max_body_bytes = settings.edge_max_body_bytes
        self.ports = Ports(settings.edge_http.port, settings.edge_https.port)
        self.redirects_to_https = settings.edge_https_redirect
        self.trusted_proxies = settings.edge_trusted_proxies
        self.idle_seconds = settings.edge_idle_timeout_seconds
        self.head_seconds = settings.edge_head_timeout_seconds
        self.upstream_idle_seconds = settings.edge_origin_idle_seconds
        self.admission = Admission(
            in_all=min(settings.edge_max_connections, room_for_connections()),
            per_client=settings.edge_max_connections_per_address,
            trusted_proxies=settings.edge_trusted_proxies,
        )
        self.keyring = keyring
        self.routes = RouteTable(reader, keyring)
        self._swept_generation = 0
        self.counters = Counters()
        self.connections: set[Connection] = set()
        self.paused: set[Connection] = set()  # those not read from
        self.is_draining = False
        self.now = loop.time()
        self._reader = reader
        self._clock = clock = SystemClock()
        policy = own_policy(settings)
        self._desk = LeaseDesk(
            Connector(
                OriginResolver(settings.dns_servers, clock),
                policy,
                timeout_seconds=settings.edge_connect_timeout_seconds,
            ),
            Pool(max_open=settings.edge_origin_connections, max_waiters=settings.edge_origin_waiters),
            Breaker(
                failures=settings.edge_breaker_failures,
                max_pause_seconds=settings.edge_breaker_max_pause_seconds,
                random=random,
            ),
            loop,
        )
        # The connector gives up by itself and says why; waiting for a lease is bounded by twice that.
        timeouts = Timeouts(
            connect=2 * settings.edge_connect_timeout_seconds + TICK_SECONDS,
            origin=settings.edge_origin_timeout_seconds,
            body=settings.edge_body_timeout_seconds,
            tunnel=settings.edge_tunnel_timeout_seconds,
        )
        self.relay = Relay(self._desk, timeouts, settings.edge_max_body_bytes, self._record, loop.time, self.date_field)
        self.access_log = (
            AccessLog(settings.edge_access_log, sample=settings.edge_access_log_sample, random=random)
            if settings.edge_access_log != OFF
            else None
        )
        self._ticking = loop.call_later(TICK_SECONDS, self._tick)
        self.on_replica_change()

    def is_idle(self) -> bool:
        """No exchange is under way."""
        return not any(connection.exchange for connection in self.connections)

    def measurements(self) -> list[Family]:
        own = self.counters.families(
            open_connections=self.admission.open_count,
            upstream_connections=self._desk.open_count,
            resting_origins=self._desk.resting_origins,
        )
        return [*own, *self.admission.families(), *(self.access_log.families() if self.access_log else ())]

    @property
    def upstream_count(self) -> int:
        """Connections to origins: idle, leased or being made."""
        return self._desk.open_count

    def on_replica_change(self) -> None:
        self.routes.generation = self._reader.generation()

    def date_field(self) -> bytes:
        return date_field(self.unix_seconds())

    def unix_seconds(self) -> int:
        return int(self._clock.now().timestamp())

    def is_awaiting_certificate(self, domain: str) -> bool:
        return is_awaiting_certificate(self._reader, domain, self.unix_seconds())

    def challenge_answer(self, head: RequestHead) -> bytes | None:
        """What answers the HTTP-01 challenge, if it is ours to answer."""
        return own_answer(self._reader, head, lambda domain: self.routes.find(domain) is not None)

    def drain(self) -> None:
        """From now on each answer says that it is its connection's last.

        Who was told that the connection stays may have its next request on the way: closing at once would lose it.
        """
        self.is_draining = True
        for connection in self.connections:
            connection.expect_last_request()

    def close(self) -> None:
        self._ticking.cancel()
        for connection in list(self.connections):
            connection.abort()
        self._desk.close()
        if self.access_log is not None:
            self.access_log.close()

    def _tick(self) -> None:
        self._ticking = self.loop.call_later(TICK_SECONDS, self._tick)
        before, self.now = self.now, self.loop.time()
        self._desk.now = now = self.now
        self.counters.domains.settle(now - before)
        if self.access_log is not None:
            self.access_log.flush()
        for connection in [each for each in self.connections if each.deadline < now]:
            connection.on_deadline()
        for connection in list(self.paused):
            connection.look_after_client()
        self._desk.close_idle(now - self.upstream_idle_seconds)
        if self._swept_generation != self.routes.generation:
            self._swept_generation = self.routes.generation
            self._end_departed()

    def _end_departed(self) -> None:
        """A deleted domain serves no more, and another application's not for its predecessor: tunnels end too."""
        for connection in list(self.connections):
            exchange = connection.exchange
            if exchange is not None:
                route = self.routes.find(exchange.route.domain)
                if route is None or route.application_id != exchange.route.application_id:
                    exchange.cancel()
                    connection.abort()

    def _record(self, exchange: Exchange) -> None:
        self.counters.exchange(exchange, self.loop.time())
        if self.access_log is not None:
            exchange.client.log(exchange)
