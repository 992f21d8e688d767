"""The dispatcher: does what the pool decides. Leases upstream connections to exchanges, and takes them back.

A lease is taken at once when an idle connection is there (`take`), else asked for (`request`) and answered later by
``on_lease`` or ``on_lease_failed``, never before `request` returns. It ends by `give_back` (reusable) or `drop`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Protocol

from common.logs import get_logger
from common.metrics import Family
from common.origin_faults import FailingOrigin, OriginIdentity
from edge.http.error_responses import BUSY, ORIGIN_DOWN, ORIGIN_SLOW, ORIGIN_UNREACHABLE, ErrorResponse
from edge.routing.route import Origin
from edge.upstream.breaker import MOST_REPORTED, Breaker
from edge.upstream.connection import LeaseHolder, UpstreamConnection
from edge.upstream.connector import ConnectFailed, Connector, ConnectTimedOut
from edge.upstream.following import AddressFollower
from edge.upstream.idle_times import IdleTimes
from edge.upstream.pool import Decision, Pool
from edge.upstream.remembered import DISTRUST_SECONDS, INVALID_SECONDS, Remembered
from edge.upstream.response_memory import ResponseMemories

_log = get_logger("edge.upstream")


class LeaseRequester(LeaseHolder, Protocol):
    """An exchange that asks for a lease."""

    def on_lease(self, connection: UpstreamConnection) -> None:
        """Take the connection that was asked for."""

    def on_lease_failed(self, kind: ErrorResponse, reason: str = "") -> None:
        """Go without a connection. `reason` is for the operator: what the kind does not say."""

    def log_fields(self) -> dict[str, str]:
        """Return what names the request in log lines."""


class UpstreamDispatcher:
    """Leases a worker's connections.

    Owns the pool, every upstream connection and the tasks that make them.
    """

    def __init__(
        self,
        connector: Connector,
        pool: Pool[UpstreamConnection, LeaseRequester],
        breaker: Breaker,
        follower: AddressFollower,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._connector = connector
        self._pool = pool
        self._breaker = breaker
        self._follower = follower
        self._idle_times = IdleTimes()
        self._replaced_count = 0
        self._distrusted: Remembered[Origin] = Remembered(DISTRUST_SECONDS)
        self._invalid: Remembered[Origin] = Remembered(INVALID_SECONDS)
        self._responses = ResponseMemories()
        self._loop = loop
        self._tasks: dict[LeaseRequester, asyncio.Task[None]] = {}
        self._connections: set[UpstreamConnection] = set()  # idle or leased, counted by the pool
        self.now = loop.time()  # coarse, set by the worker's tick

    @property
    def open_count(self) -> int:
        """Return how many connections are idle, leased or being made."""
        return self._pool.open_count

    @property
    def open_breakers(self) -> int:
        """Return how many origins could not be reached, and are left alone for a while."""
        return self._breaker.open_count

    def failing_origins(self) -> list[FailingOrigin]:
        """Return origins that could not be reached in the last minute, and whose answer was not valid HTTP.

        At most `MOST_REPORTED` of each.
        """
        now = self._loop.time()
        self._invalid.expire(now)
        latest = islice(reversed(self._invalid), MOST_REPORTED)
        return [
            *self._breaker.failing(now),
            *(FailingOrigin(OriginIdentity(*origin[:-1]), "not_http") for origin in latest),
        ]

    def take_recovered(self) -> list[OriginIdentity]:
        """Return origins whose breaker a probe of this worker has closed since this was last called."""
        return self._breaker.take_recovered()

    def note_recovered(self, origins: Iterable[OriginIdentity]) -> None:
        """Close the breakers of these: another worker reached them."""
        for identity in origins:
            self._breaker.note_recovered(identity)

    def note_invalid(self, origin: Origin) -> None:
        """Note that the origin's answer was not valid HTTP: the visitor got `ORIGIN_INVALID`."""
        self._invalid.add(origin, self._loop.time())

    def take(self, origin: Origin, holder: LeaseHolder) -> UpstreamConnection | None:
        """Lease an idle connection to a request that may be sent a second time; None if there is none."""
        while (connection := self._pool.take(origin)) is not None:
            # Looking costs a system call: who was given back since the last tick is left to the loop.
            is_just_given_back = connection.idle_since >= self.now and connection.answered_with_body
            if is_just_given_back or connection.is_silent():
                connection.holder = holder
                return connection
            connection.transport.abort()
        return None

    def take_young(self, origin: Origin, holder: LeaseHolder) -> UpstreamConnection | None:
        """Lease an idle connection to any request: the origin is not known to be about to close it."""
        connection = self._take_young(origin)
        if connection is not None:
            connection.holder = holder
            return connection
        if self._learn_from_oldest(origin) and (connection := self._take_young(origin)) is not None:
            connection.holder = holder
        elif (replaced := self._pool.make_room(origin)) is not None:
            self._replaced_count += 1
            replaced.transport.abort()
        return connection

    def _take_young(self, origin: Origin) -> UpstreamConnection | None:
        idle_since = self._loop.time() - self._idle_times.longest(origin)
        while (connection := self._pool.take_young(origin, idle_since)) is not None:
            if connection.is_silent():
                return connection
            connection.transport.abort()
        return None

    def _learn_from_oldest(self, origin: Origin) -> bool:
        """Learn from the longest idle connection how long the origin keeps them; whether there is one that is open."""
        oldest = self._pool.oldest(origin)
        if oldest is None or oldest.is_closing() or not oldest.is_silent():
            return False
        self._note_survived(oldest)
        return True

    def is_ample(self, origin: Origin) -> bool:
        """Return whether one client may have more than its share of the origin's connections."""
        return self._pool.is_ample(origin)

    def request(self, origin: Origin, requester: LeaseRequester) -> None:
        """Ask for a lease, which comes later."""
        decision = self._pool.request(origin, requester)
        if decision is Decision.OPEN:
            self._open(origin, requester)
        elif decision is Decision.BUSY:
            self._loop.call_soon(requester.on_lease_failed, BUSY)

    def withdraw(self, origin: Origin, requester: LeaseRequester) -> None:
        """Withdraw a request for a lease: none of its callbacks is called afterwards."""
        task = self._tasks.pop(requester, None)
        if task is None:
            self._pool.withdraw(origin, requester)
        else:
            task.cancel()  # it may not even have begun: the place is given up here, not there
            self._forget(origin)

    def give_back(self, connection: UpstreamConnection, now: float, with_body: bool) -> None:
        """End the lease of a connection that can serve another exchange.

        `with_body`: the response had one. A broken origin may send one behind a response without: it is looked for
        before the next lease, which is now where a request waits.
        """
        connection.answered_with_body = with_body
        if (
            connection.is_retired
            or not (with_body or not self._pool.has_waiter(connection.origin) or connection.is_silent())
            or (self._distrusted and connection.origin in self._distrusted)
        ):
            self.drop(connection)
            return
        connection.holder = None
        connection.served += 1
        if connection.served == 1 and connection.origin.scheme == "https":
            self._keep_session(connection)
        is_closing = connection.is_closing  # as in the pool
        if is_closing():
            return
        waiter = self._pool.give_back(connection.origin, connection, now)
        if waiter is not None:
            connection.holder = waiter
            waiter.on_lease(connection)

    def drop(self, connection: UpstreamConnection) -> None:
        """End the lease of a connection that cannot serve again."""
        if not connection.served and connection.origin.scheme == "https":
            self._keep_session(connection)
        connection.holder = None
        connection.transport.abort()

    def note_unanswered(self, connection: UpstreamConnection) -> None:
        """Note that a connection with a request ended before any byte of a response."""
        if connection.served:
            self._note_closed(connection)
        else:
            self._connector.note_unanswered(connection)

    def note_stated_idle_time(self, origin: Origin, seconds: int) -> None:
        """Note how long the origin states to keep idle connections."""
        self._idle_times.note_stated(origin, seconds, self.now)

    def tick(self, now: float, idle_before: float) -> None:
        """Close what was idle since before `idle_before`, and follow DNS. Called some times a second."""
        self.now = now
        self._close_idle(idle_before)
        self._distrusted.expire(now)
        self._follower.tick(_retire)

    def _close_idle(self, idle_before: float) -> None:
        for connection in self._pool.expired(idle_before):
            if not connection.is_closing():
                self._note_survived(connection)
            connection.transport.close()

    def _note_survived(self, connection: UpstreamConnection) -> None:
        now = self._loop.time()
        self._idle_times.note_survived(connection.origin, now - connection.idle_since, now)

    def _note_closed(self, connection: UpstreamConnection) -> None:
        now = self._loop.time()
        self._idle_times.note_closed(connection.origin, now - connection.idle_since, now)

    def _keep_session(self, connection: UpstreamConnection) -> None:
        """Keep the TLS session of a connection that has served for the first time: its tickets have come."""
        self._connector.tls.keep_session(connection.origin, connection.transport.get_extra_info("ssl_object"))

    def families(self) -> list[Family]:
        """Return the metrics."""
        return [
            Family.of(
                "frontage_edge_retired_upstream_connections",
                "Connections to addresses that left their origin's DNS answer.",
                "counter",
                self._follower.retired_count,
            ),
            Family.of(
                "frontage_edge_replaced_upstream_connections",
                "Idle connections replaced by new ones, since the origin might have been closing them.",
                "counter",
                self._replaced_count,
            ),
            Family.of(
                "frontage_edge_origin_address_failures",
                "Addresses of origins with several, passed over since they failed.",
                "counter",
                self._connector.address_failure_count,
            ),
            *self._connector.tls.families(),
            *self._connector.resolver.families(),
        ]

    def close(self) -> None:
        """End all connections, and stop making them."""
        self._follower.close()
        for task in self._tasks.values():
            task.cancel()
        for connection in list(self._connections):
            connection.transport.abort()

    def _open(self, origin: Origin, requester: LeaseRequester) -> None:
        """Connect for the requester, for which a place was reserved.

        If the origin's breaker is open, no other waiter gets a connection.
        """
        place_for: LeaseRequester | None = requester
        while place_for is not None:
            if self._breaker.admits(origin, self._loop.time()):
                task = self._loop.create_task(self._connect(origin, place_for), name=f"connect {origin.host}")
                self._tasks[place_for] = task
                return
            self._loop.call_soon(place_for.on_lease_failed, ORIGIN_UNREACHABLE)
            place_for = self._pool.forget(origin)

    async def _connect(self, origin: Origin, requester: LeaseRequester) -> None:
        started_at = self._loop.time()
        try:
            connection = await self._connector.connect(origin, self._on_lost)
        except ConnectFailed as error:
            authority, reason = origin.authority.decode(), str(error)
            _log.info("origin could not be reached", origin=authority, reason=reason, **requester.log_fields())
            self._breaker.failed(origin, error.fault, started_at=started_at, now=self._loop.time())
            self._tasks.pop(requester, None)
            self._forget(origin)
            requester.on_lease_failed(ORIGIN_SLOW if isinstance(error, ConnectTimedOut) else ORIGIN_DOWN, reason)
        except Exception:  # noqa: BLE001 - a task's root: it logs, and the requester is answered
            _log.exception("connecting failed unexpectedly", origin=origin.authority.decode(), **requester.log_fields())
            self._tasks.pop(requester, None)
            self._forget(origin)
            requester.on_lease_failed(ORIGIN_DOWN)
        else:
            self._breaker.succeeded(origin)
            self._tasks.pop(requester, None)
            if connection.is_closing():  # it came and went
                self._connector.note_unanswered(connection)
                self._forget(origin)
                requester.on_lease_failed(ORIGIN_DOWN)
                return
            self._connections.add(connection)
            self._follower.add(connection)
            connection.responses = self._responses.of(origin)
            connection.holder = requester
            requester.on_lease(connection)

    def _on_lost(self, connection: UpstreamConnection) -> None:
        # Connections are counted from the moment a place is reserved; those that never came out of the
        # connector are accounted for by `_connect`.
        if connection.sent_unsolicited_bytes:
            self._distrust(connection.origin)
        if connection.ended_idle and connection.served:
            self._note_closed(connection)
        if connection in self._connections:
            self._connections.discard(connection)
            self._follower.discard(connection)
            self._forget(connection.origin)

    def _distrust(self, origin: Origin) -> None:
        if origin not in self._distrusted:
            _log.warning("origin sent bytes that belong to no request", origin=origin.authority.decode())
        self._distrusted.add(origin, self._loop.time())
        while (connection := self._pool.take(origin)) is not None:
            connection.transport.abort()

    def _forget(self, origin: Origin) -> None:
        waiter = self._pool.forget(origin)
        if waiter is not None:
            self._open(origin, waiter)


def _retire(connection: UpstreamConnection) -> None:
    """Have the connection serve no further exchange; close it unless one has it."""
    connection.is_retired = True
    if connection.holder is None:
        connection.transport.close()
