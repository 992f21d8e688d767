"""What all client connections of a worker share: routes, leases, limits, counters, and the clock.

Deadlines are swept once a tick instead of being timers, since nearly all are met. This module must not read or
write a client's bytes: that is `edge.proxy.client_connection`'s.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from random import random
from time import monotonic
from typing import Protocol

from common.addresses import tenant_policy
from common.api_domain import api_domain, dialled_api
from common.clock import Clock, SystemClock
from common.metrics import Family
from common.names import wildcard_above
from common.origin_faults import FailingOrigin, OriginIdentity
from common.probe import probe_answer
from common.secrets import Keyring
from common.settings import Settings
from common.tracing import open_tracer
from common.traffic import TrafficReport
from edge.http import request_ids
from edge.http.dates import date_field
from edge.http.request import RequestHead
from edge.http2.literals import KnownLiterals
from edge.http2.responses import HeadEncoder
from edge.proxy.access_log import OFF, AccessLog
from edge.proxy.counters import ExchangeCounters
from edge.proxy.exchange import Exchange
from edge.proxy.exchange_context import ExchangeContext
from edge.proxy.heap import HeapTrimmer, find_heap
from edge.proxy.recent_requests import RecentRequests
from edge.proxy.request_traces import RequestTraces
from edge.proxy.upload_store import UploadStore
from edge.proxy.worker_limits import LAST_REQUEST_SECONDS, TICK_SECONDS, WorkerLimits
from edge.replica.certificates import read_certificate_state, read_thumbprint
from edge.replica.records import RecordReader
from edge.replica.routes import RouteTable
from edge.routing.certificates import answers_challenge, is_awaiting_certificate
from edge.routing.challenge import key_authorization
from edge.routing.decide import Ports
from edge.routing.respond import Listening, Lookup
from edge.routing.response_policy import NO_FIELDS
from edge.routing.visitors import VisitRates
from edge.transport.connection_limits import ConnectionLimits
from edge.transport.deferred_work import DeferredWork, LoopTurns
from edge.upstream.address_order import AddressOrder
from edge.upstream.breaker import Breaker
from edge.upstream.connection import UpstreamConnection
from edge.upstream.connector import Connector
from edge.upstream.dispatcher import LeaseRequester, UpstreamDispatcher
from edge.upstream.following import AddressFollower
from edge.upstream.origin_tls import OriginTls
from edge.upstream.pool import Pool
from edge.upstream.resolution import OriginResolver

_SETTLE_SECONDS = 1.0
# A FIN comes from a client that left and from one that half-closed and still reads. Bytes to the first are answered
# with RST; the second discards an interim response (RFC 9110 §15.2.1). Most responses come sooner.
_PROBE_AFTER_SECONDS = 2.0
_FINAL_GOAWAY_SECONDS = 1.0  # behind the first: for what the client sent before it read that


class ReplicaView(RecordReader, Protocol):
    """What the data path reads of the replica."""

    def generation(self) -> int:
        """Return the number that moves with each commit."""

    def is_cut_off(self) -> bool:
        """Return whether Postgres is out of reach of this node."""

    def is_unattended(self) -> bool:
        """Return whether no monitor obtains certificates."""


class Connection(Protocol):
    """A client connection, as its worker sees it."""

    deadline: float  # by `WorkerContext.now`

    def is_busy(self) -> bool:
        """Return whether a client waits for what is under way."""

    def exchanges(self) -> Sequence[Exchange]:
        """Return the exchanges under way."""

    def cut(self, exchange: Exchange) -> None:
        """End one of the exchanges at once."""

    def on_deadline(self) -> None:
        """Act on the lack of progress."""

    def check_disconnect(self) -> None:
        """Abort the connection if its client disconnected while it is not read from."""

    def expect_last_request(self) -> None:
        """Keep the connection for one more request only."""

    def abort(self) -> None:
        """End the connection at once."""


class WorkerContext:
    """The shared parts of a worker. Created and closed by its composition root."""

    def __init__(
        self, settings: Settings, reader: ReplicaView, keyring: Keyring, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.loop = loop
        bounds = WorkerLimits.of(settings)
        self.limits = bounds.head
        self.listening_http = _listening(settings, bounds, secure=False)
        self.listening_https = _listening(settings, bounds, secure=True)
        self.trusted_proxies = settings.edge_trusted_proxies
        self.idle_seconds = bounds.idle_seconds
        self.head_seconds = bounds.head_seconds
        self.probe_after_seconds = _PROBE_AFTER_SECONDS
        self.final_goaway_seconds = _FINAL_GOAWAY_SECONDS
        self.upstream_idle_seconds = bounds.origin_idle_seconds
        self.connection_limits = _connection_limits(settings, bounds)
        self.routes = RouteTable(
            reader,
            keyring,
            api_domain=api_domain(settings),
            response_policy=NO_FIELDS if settings.edge_request_ids else None,  # to which exchanges add the id
        )
        self.lookup = Lookup(
            self.routes.find,
            self.is_awaiting_certificate,
            self.challenge_answer,
            partial(probe_answer, keyring),
            VisitRates(monotonic),
        )
        self.recent_requests = {
            (secure, trusted): RecentRequests(self.routes, self.limits, bounds.max_body_bytes)
            for secure in (False, True)
            for trusted in (False, True)
        }
        self.recent_http2_requests = {
            trusted: RecentRequests(self.routes, self.limits, bounds.max_body_bytes) for trusted in (False, True)
        }
        self.head_encoder = HeadEncoder()
        self.fill_head = self.head_encoder.fill  # a bound method takes 80 octets: one for all
        self.literals = KnownLiterals()
        self._swept_generation = 0
        self.counters = ExchangeCounters()
        self.deferred = DeferredWork(loop)
        # What many connections are due for together: each kind has its part of every turn of the loop.
        self.cancellations = DeferredWork(loop)  # of exchanges, that a client's end or failure brings
        self.announcements = DeferredWork(loop)  # of the worker's end, to clients
        self._deadlines = DeferredWork(loop)
        self._disconnect_checks = DeferredWork(loop)
        self._sweeps = DeferredWork(loop)  # of removed domains
        self.connections: set[Connection] = set()
        self.paused: set[Connection] = set()  # those not read from
        self.now = self._settled_at = loop.time()
        self._reader = reader
        self._keyring = keyring
        self._clock = SystemClock()
        self._dispatcher = _dispatcher(settings, bounds, self._clock, loop, self.deferred)
        self._uploads = UploadStore(settings.state_dir, bounds.upload_buffer_bytes, loop)
        self.exchanges = ExchangeContext(
            self._dispatcher,
            self._uploads,
            self.deferred,
            bounds.exchange,
            bounds.max_body_bytes,
            loop.time,
            self.date_field,
            self.unix_seconds,
            settings.edge_request_ids,
        )
        self.access_log = _request_log(settings)
        self.assigns_request_ids = self.listening_https.assigns_request_ids
        self.new_request_id = request_ids.new_ids().__next__
        self._heap_trimmer = HeapTrimmer(find_heap(), self.now)
        self._ticking = loop.call_later(TICK_SECONDS, self._tick)
        self.on_replica_change()

    def is_idle(self) -> bool:
        """Return whether no exchange is under way, and all clients know of it if the worker leaves."""
        is_awaited = self.cancellations or self.announcements
        return not (is_awaited or any(connection.is_busy() for connection in self.connections))

    def measurements(self) -> list[Family]:
        """Return the metrics of the data path."""
        own = self.counters.families(
            open_connections=self.connection_limits.open_count,
            upstream_connections=self.upstream_count,
            open_breakers=self._dispatcher.open_breakers,
        )
        of_log = self.access_log.families() if self.access_log else ()
        return [
            *own,
            *self._dispatcher.families(),
            *self._uploads.families(),
            *self.connection_limits.families(),
            *of_log,
        ]

    def failing_origins(self) -> list[FailingOrigin]:
        """Return origins that could not be reached in the last minute."""
        return self._dispatcher.failing_origins()

    def take_recovered_origins(self) -> list[OriginIdentity]:
        """Return origins that were reached again since this was last called."""
        return self._dispatcher.take_recovered()

    def note_recovered_origins(self, origins: Sequence[OriginIdentity]) -> None:
        """Note that another worker reached these origins again."""
        self._dispatcher.note_recovered(origins)

    def take_traffic(self) -> TrafficReport:
        """Return what was counted for each domain since this was last called.

        Counts of the last `_SETTLE_SECONDS` may be missing.
        """
        return self.counters.domains.take_report()

    @property
    def upstream_count(self) -> int:
        """Return the number of connections to origins: idle, leased or being made."""
        return self._dispatcher.open_count

    def on_replica_change(self) -> None:
        """Serve by the replica's last commit."""
        self.routes.generation = self._reader.generation() + self._keyring.revision  # neither ever falls

    def date_field(self) -> bytes:
        """Return the Date field for now."""
        return date_field(self.unix_seconds())

    def unix_seconds(self) -> int:
        """Return the time of day, in whole seconds."""
        return int(self._clock.now().timestamp())

    def is_awaiting_certificate(self, domain: str) -> bool:
        """Return whether HTTPS fails at the domain until its certificate is issued."""
        states = (read_certificate_state(self._reader, name) for name in (domain, wildcard_above(domain)))
        return all(is_awaiting_certificate(state, self.unix_seconds()) for state in states)

    def challenge_answer(self, head: RequestHead) -> bytes | None:
        """Return the body that answers an HTTP-01 challenge; None where the edge does not answer it."""
        thumbprint = read_thumbprint(self._reader)
        if thumbprint is None:
            return None
        route = self.routes.find(head.fields.host)
        is_ours = answers_challenge(
            read_certificate_state(self._reader, head.fields.host if route is None else route.domain),
            is_enrolled=route is not None,
            is_cut_off=self._reader.is_cut_off(),
        )
        return key_authorization(head, thumbprint) if is_ours else None

    def drain(self) -> None:
        """Have each response close its connection from now on.

        A keep-alive client may already have sent its next request: closing at once would lose it.
        """
        self.exchanges.is_draining = True
        self.idle_seconds = LAST_REQUEST_SECONDS
        self.announcements.add_all(connection.expect_last_request for connection in self.connections)

    def close(self) -> None:
        """End all connections, to clients and to origins."""
        self._ticking.cancel()
        for connection in list(self.connections):
            connection.abort()
        self.cancellations.finish()
        self._settle()
        self._dispatcher.close()
        self._uploads.close()
        if self.access_log is not None:
            self.access_log.close()

    def _tick(self) -> None:
        self._ticking = self.loop.call_later(TICK_SECONDS, self._tick)
        now = self.now = self.loop.time()
        if now - self._settled_at >= _SETTLE_SECONDS:
            self._settle()
        if self.access_log is not None:
            self.access_log.flush()
        if not self._deadlines:  # else those of the last tick are not over
            overdue = [each for each in self.connections if each.deadline < now]
            self._deadlines.add_all(partial(self._pass_deadline, each) for each in overdue)
        if not self._disconnect_checks:
            self._disconnect_checks.add_all(partial(self._check_disconnect, each) for each in self.paused)
        self._dispatcher.tick(now, idle_before=now - self.upstream_idle_seconds)
        self._heap_trimmer.look(now)
        if self.routes.lacks_secrets:
            self._keyring.follow_file()
            self.on_replica_change()
        if self._swept_generation != self.routes.generation and not self._sweeps:
            self._swept_generation = self.routes.generation
            self._close_removed_domains()

    def _pass_deadline(self, connection: Connection) -> None:
        if connection in self.connections and connection.deadline < self.now:  # still so
            connection.on_deadline()

    def _check_disconnect(self, connection: Connection) -> None:
        if connection in self.paused:
            connection.check_disconnect()

    def _settle(self) -> None:
        """Have what was counted for domains ready for `take_traffic`."""
        now = self.loop.time()
        self.counters.domains.settle(now - self._settled_at, self._application_of)
        self._settled_at = now

    def _application_of(self, domain: str) -> str | None:
        route = self.routes.find(domain)
        return None if route is None else route.application_id

    def _close_removed_domains(self) -> None:
        """End the connections of domains that were deleted, or that another application has now.

        Tunnels end, too.
        """
        busy = [each for each in self.connections if each.exchanges()]
        self._sweeps.add_all(partial(self._cut_removed, each) for each in busy)

    def _cut_removed(self, connection: Connection) -> None:
        for exchange in connection.exchanges():
            route = self.routes.find(exchange.head.fields.host)
            if route is None or route.application_id != exchange.route.application_id:
                connection.cut(exchange)


def _connection_limits(settings: Settings, bounds: WorkerLimits) -> ConnectionLimits:
    return ConnectionLimits(
        in_all=bounds.client_connections,
        per_client=bounds.connections_per_client,
        trusted_proxies=settings.edge_trusted_proxies,
    )


def _dispatcher(
    settings: Settings,
    bounds: WorkerLimits,
    clock: Clock,
    loop: asyncio.AbstractEventLoop,
    deferred: DeferredWork,
) -> UpstreamDispatcher:
    resolver = OriginResolver(settings.dns_servers, clock)
    connector = Connector(
        resolver,
        tenant_policy(settings),
        AddressOrder(random),
        OriginTls(deferred),
        LoopTurns(loop),
        timeout_seconds=bounds.connect_seconds,
        api=dialled_api(settings),
    )
    follower = AddressFollower(resolver, loop, timeout_seconds=bounds.connect_seconds)
    pool: Pool[UpstreamConnection, LeaseRequester] = Pool(
        max_open=bounds.origin_connections, max_waiters=bounds.origin_waiters
    )
    breaker = Breaker(failures=bounds.breaker_failures, max_pause_seconds=bounds.breaker_pause_seconds, random=random)
    return UpstreamDispatcher(connector, pool, breaker, follower, loop)


def _assigns_request_ids(settings: Settings) -> bool:
    is_traced = settings.otlp_endpoint is not None and settings.edge_trace_sample > 0
    return is_traced or settings.edge_request_ids or settings.edge_access_log != OFF


def _request_log(settings: Settings) -> AccessLog | RequestTraces | None:
    log, tracer = _access_log(settings), open_tracer(settings, "edge") if settings.edge_trace_sample else None
    return log if tracer is None else RequestTraces(tracer, log, settings.edge_trace_sample, random)


def _access_log(settings: Settings) -> AccessLog | None:
    if settings.edge_access_log == OFF:
        return None
    return AccessLog(
        settings.edge_access_log,
        node=socket.gethostname(),
        sample=settings.edge_access_log_sample,
        user_agent=settings.edge_access_log_user_agent,
        random=random,
        line_format=settings.edge_access_log_format,
    )


def _listening(settings: Settings, bounds: WorkerLimits, *, secure: bool) -> Listening:
    return Listening(
        secure=secure,
        redirects_to_https=settings.edge_https_redirect,
        ports=Ports(settings.edge_http.port, settings.edge_https.port),
        max_body_bytes=bounds.max_body_bytes,
        assigns_request_ids=_assigns_request_ids(settings),
    )
