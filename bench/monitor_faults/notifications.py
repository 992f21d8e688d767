"""Reads the events sent to partners while they are written, and counts which are true."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta

from bench.monitor_faults.world import MonitorWorld
from common.db import webhook_endpoints
from common.db.pool import Database
from common.errors import DatabaseUnavailable

# Within which a loss or a return must be notified once nothing is broken any more. A transition that was lost is lost
# for ever, so this only has to be long; `Counts.slowest_event_seconds` is how long it took in spite of the faults.
_NOTIFIED_SECONDS = 300.0
_CHECK_SECONDS = 60.0  # longer than any check takes (`common.record_checks`): what it saw may be so old
_SETTLE_SECONDS = 300.0
_READ_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event as it was recorded; `hosts` are those of the records it reports missing."""

    id: str
    type: str
    domain: str
    sequence: int
    hosts: tuple[str, ...]
    created_at: datetime


class Notifications:
    """The events recorded so far.

    Mutable state: all events, by domain, and how many of them were waited for.
    """

    def __init__(self, world: MonitorWorld) -> None:
        self._world = world
        self._database = world.database
        self._changed = asyncio.Condition()
        self._taken: dict[str, int] = {}
        self.events: dict[str, list[ReceivedEvent]] = {}

    async def follow_for_ever(self) -> None:
        """Read the events again and again, until cancelled."""
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                await self.read()
            await asyncio.sleep(_READ_SECONDS)

    async def read(self) -> None:
        """Read all events once."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                "select id, type, domain, sequence, fields, created_at from events order by domain, sequence"
            )
        events: dict[str, list[ReceivedEvent]] = {}
        for row in rows:
            missing = row["fields"]["data"]["records_non_propagated"]
            hosts = tuple(record["host"] for record in missing)
            event = ReceivedEvent(row["id"], row["type"], row["domain"], row["sequence"], hosts, row["created_at"])
            events.setdefault(event.domain, []).append(event)
        async with self._changed:
            self.events = events
            self._changed.notify_all()

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(condition)

    async def wait_for(self, domain: str, kind: str) -> bool:
        """Wait for the domain's next event, and return whether it comes in time and is of this kind."""

        def is_there() -> bool:
            return len(self.events.get(domain, ())) > self._taken.get(domain, 0)

        began_at = time.monotonic()
        waiting = asyncio.ensure_future(self._until(is_there))
        try:
            await _first_of(waiting, self._world.quiet.wait())
            await asyncio.wait_for(waiting, _NOTIFIED_SECONDS)
        except TimeoutError:
            return False
        finally:
            waiting.cancel()
        counts = self._world.counts
        counts.slowest_event_seconds = max(counts.slowest_event_seconds, time.monotonic() - began_at)
        number = self._taken.get(domain, 0)
        self._taken[domain] = number + 1
        return self.events[domain][number].type == kind


async def _first_of(waiting: asyncio.Future[None], other: Coroutine[None, None, object]) -> None:
    """Wait until `waiting` or the other is done."""
    beside = asyncio.ensure_future(other)
    try:
        await asyncio.wait((waiting, beside), return_when=asyncio.FIRST_COMPLETED)
    finally:
        beside.cancel()


async def settle(database: Database) -> None:
    """Wait until every delivery is settled; retries that would wait for minutes are made due."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SETTLE_SECONDS):
            while await make_deliveries_due(database):  # noqa: ASYNC110 - only Postgres knows, and it must be asked
                await asyncio.sleep(0.5)


async def make_deliveries_due(database: Database) -> bool:
    """Make pending deliveries due now, and return whether there are any."""
    try:
        async with database.transaction() as connection:
            pending = await connection.fetch("select distinct application_id from deliveries where status = 'pending'")
            for row in pending:  # an endpoint is not looked at before its own time
                await webhook_endpoints.wake(connection, row["application_id"])
            await connection.execute("update deliveries set due_at = now() where status = 'pending'")
    except DatabaseUnavailable:
        return True
    return bool(pending)


async def audit(world: MonitorWorld, sent: Notifications) -> None:
    """Count the events sent, the false ones, and those that never arrived."""
    counts = world.counts
    await sent.read()
    for event in (event for events in sent.events.values() for event in events):
        counts.events += 1
        if _is_false(world, event):
            counts.false_alarms += 1
            counts.add_detail(f"{event.created_at:%H:%M:%S} {event.type} of {event.domain} {event.hosts} was not so")
    accepted = world.receiver.accepted
    counts.webhooks = len(accepted)
    async with world.database.connection() as connection:
        rows = await connection.fetch("select event_id, status, last_error from deliveries")
    counts.superseded = sum(row["status"] == "superseded" for row in rows)
    for row in rows:
        if row["event_id"] not in accepted and row["status"] != "superseded":
            counts.lost_webhooks += 1
            counts.add_detail(f"{row['event_id']} never arrived: {row['status']}, {row['last_error']}")
    counts.lost_webhooks += counts.events - len(rows)  # every event has a delivery


def _is_false(world: MonitorWorld, event: ReceivedEvent) -> bool:
    """Return whether the event reports what was not so in the time of its check."""
    first = event.created_at - timedelta(seconds=_CHECK_SECONDS)
    if event.type == "domain.record_restored":
        return not world.was_present(f"www.{event.domain}", first, event.created_at)
    names = [event.domain if host == "@" else f"{host}.{event.domain}" for host in event.hosts]
    return not names or not all(world.was_absent(name, first, event.created_at) for name in names)
