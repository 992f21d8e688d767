"""Settlement: ends a write or an undo of a flow by what the zone's own servers answer.

Done by the request that wrote, or, if its process died, by a monitor when the lease has lapsed. Both hold the flow
under their fence, so a flow is settled once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from common import monitored_changes
from common.clock import Clock
from common.connect import flow_events
from common.connect.plan import Values, settle_journal, settle_undo
from common.connect.root import accept_fewer_addresses
from common.connect.ways.problems import WayFailed
from common.db import connect_flows, orders
from common.db.connect_flows import Changes, Flow
from common.db.monitored_domains import MonitoredKey
from common.db.pool import Connection, Database
from common.errors import DatabaseUnavailable
from common.flow_states import Move, State, next_state
from common.flows.enrolments import MonitorEnrolment, ProductEnrolment
from common.flows.plan import JournalEntry

LEASE_SECONDS = 15.0

_NOT_WRITTEN = WayFailed("not_written", "The provider took the change, but the zone's own servers do not have it.")
_INTERRUPTED = WayFailed("interrupted", "The change was interrupted.")


@contextlib.asynccontextmanager
async def keep_lease(database: Database, flow: Flow) -> AsyncIterator[None]:
    """Extend the lease for as long as the block runs."""

    async def extend_for_ever() -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 4)
            with contextlib.suppress(DatabaseUnavailable):
                async with database.transaction() as connection:
                    await connect_flows.extend(connection, [flow], lease_seconds=LEASE_SECONDS)

    keeper = asyncio.create_task(extend_for_ever(), name="connect: keep the lease")
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Settlement:
    """Ends writes and undos of flows. A process makes one."""

    database: Database
    clock: Clock
    service_servers: tuple[str, ...]
    """Addresses of ours, as `ipaddress` writes them."""

    async def settle(self, flow: Flow, now: Values, problem: WayFailed | None) -> Flow:
        """Store how a write or an undo ended, by what the zone's own servers have now.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """
        is_undo = flow.state is State.UNDOING
        journal = settle_undo(flow.journal, now) if is_undo else settle_journal(flow.journal, now)
        if not is_undo and problem is None:
            journal = accept_fewer_addresses(journal, now, flow.domain or "", self.service_servers)
        is_done = all(
            entry.status == ("taken_back" if is_undo else "written") for entry in _entries_to_settle(flow, journal)
        )
        changes: Changes = {"journal": journal}
        if not is_done:
            error = problem or (_NOT_WRITTEN if flow.attempts <= 1 else _INTERRUPTED)
            changes |= {"state": next_state(flow.state, Move.HALT), "error": error.as_problem(), "due_at": None}
        elif is_undo:
            changes |= {"state": next_state(flow.state, Move.TAKEN_BACK), "error": None, "due_at": None}
        else:
            moment = self.clock.now()
            changes |= {"state": next_state(flow.state, Move.WRITTEN), "error": None, "since": moment, "looks": 0}
            changes |= {"due_at": moment}
        async with self.database.transaction() as connection:
            if is_done and is_undo:
                await _request_rechecks(connection, flow)
                await _end_monitoring(connection, flow)
            settled = await connect_flows.settle(connection, flow, **changes)
            if settled.state is State.UNDONE:
                await flow_events.record(connection, settled, "domain.flow.undone")
            if settled.state is State.PROPAGATING:
                settled = await flow_events.complete(connection, settled, self.clock.now())
            await connect_flows.wake(connection)
            return settled


def _entries_to_settle(flow: Flow, journal: tuple[JournalEntry, ...]) -> list[JournalEntry]:
    """Return the entries that a write or an undo was about.

    They are all of an undo; of a plan, those that it was to write: sets of earlier plans are no part of it.
    """
    if flow.state is State.UNDOING:
        return list(journal)
    writing = {entry.change.key for entry in flow.journal if entry.status == "writing"}
    return [entry for entry in journal if entry.change.key in writing]


async def _request_rechecks(connection: Connection, flow: Flow) -> None:
    """Have a monitor check at once where the names of an undone flow lead now: they are active no longer."""
    for name in sorted({each.name for each in flow.enrolments if isinstance(each, ProductEnrolment)}):
        await orders.request_recheck(connection, name, flow.application_id)


async def _end_monitoring(connection: Connection, flow: Flow) -> None:
    """Stop watching the names that the flow had watched: records that it took back are not missing.

    A browser's flow leaves alone what others watch of them.
    """
    for each in flow.enrolments:
        if isinstance(each, MonitorEnrolment) and each.status == "success" and flow.domain is not None:
            key = MonitoredKey(flow.application_id, flow.domain, each.subdomain)
            if not flow.by_browser:
                await monitored_changes.remove(connection, key)
            elif not each.is_unchanged:
                await monitored_changes.remove_unchanged(connection, key, each.records)
