"""Steps: claims the flows that are due, and does each one's next step.

A step ends in one transaction under the flow's fence: the move, and the event that it causes. After a kill -9 at any
moment the lease lapses and another monitor does the step again.

    checking                the zone is inspected, and a plan made
    waiting, propagating    the records are looked for, by the rules and the code of record checks. Where a root has one
                            of our addresses, twice in a row, the others are dropped: its provider takes only one
    enrolling               live records enrol their names
    applying, undoing       the request that wrote has died: what is in the zone is read back
    choosing … planned      the flow was not touched for a day: it is closed
    any that goes on        its link, configuration or secret was taken back: it is closed
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from common.clock import Clock
from common.connect import flow_events
from common.connect.flow_enrolments import enrolments_of
from common.connect.root import find_spare
from common.connect.settlement import Settlement
from common.connect.ways.problems import WayFailed
from common.connect.zone_inspection import CouldNotInspect, ZoneInspection
from common.connect.zone_inspector import ZoneInspector
from common.db import connect_flows, flow_ends, shares
from common.db.connect_flows import Changes, Flow
from common.db.pool import Connection, Database
from common.flow_states import Move, State, is_possible, next_state
from common.flows.handover import FlowProblem
from common.flows.inspection import FlowInspection, InspectionSteps
from common.flows.plan import IN_ZONE
from common.flows.requested import RecordSighting, SightingStatus
from common.record_checks.record_checker import RecordChecker
from common.record_checks.verdicts import RecordVerdict
from common.records import as_json
from monitor.claims import POLL_SECONDS, Runner
from monitor.concurrency_shares import ConcurrencyShares
from monitor.connect.enrolment import FlowEnrolment
from monitor.connect.schedule import is_over, next_search

AT_ONCE = 32

T = TypeVar("T")

_INTERRUPTED = WayFailed("interrupted", "The change was interrupted before its end.")
_STATUSES: Mapping[RecordVerdict, SightingStatus] = {
    RecordVerdict.PRESENT: "propagated",
    RecordVerdict.MISSING: "missing",
    RecordVerdict.UNKNOWN: "unknown",
}


class FlowQueue:
    """The queue of due flows (`common.db.connect_flows`), fair to applications."""

    def __init__(self, shared: ConcurrencyShares) -> None:
        self._shares = shared
        self.extend = connect_flows.extend
        self.postpone = connect_flows.postpone
        self.next_due_seconds = connect_flows.next_due_seconds

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[Flow]:
        """Claim up to `most` due flows, fewer where an application has its share."""
        due = await connect_flows.find_due(connection, most=2 * most, full=self._shares.full(free=most))
        chosen = self._shares.choose(due, free=most)
        return await connect_flows.claim(connection, chosen, lease_seconds=lease_seconds) if chosen else []


@dataclass(frozen=True, slots=True)
class FlowSteps:
    """Performs the steps of flows. Created by `monitor.wiring`. `base_url` is that of sharing links."""

    database: Database
    clock: Clock
    inspector: ZoneInspector
    settlement: Settlement
    checker: RecordChecker
    enrolment: FlowEnrolment
    shared: ConcurrencyShares
    base_url: str

    async def perform(self, flow: Flow) -> None:
        """Do the next step of a claimed flow.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """
        with self.shared.hold(flow.application_id):
            if flow.state not in (State.APPLYING, State.UNDOING) and await self._end(flow):
                return
            match flow.state:
                case State.CHECKING:
                    await self._inspect(flow)
                case State.WAITING | State.PROPAGATING:
                    await self._find_records(flow)
                case State.ENROLLING:
                    await self._enrol(flow)
                case State.APPLYING | State.UNDOING:
                    await self._read_back(flow)
                case State.CHOOSING | State.UNCHECKED | State.PLANNED:
                    await self._settle(flow, state=next_state(flow.state, Move.CLOSE), due_at=None)
                case _:
                    await self._settle(flow, due_at=None)

    async def _end(self, flow: Flow) -> bool:
        """Close a flow whose link, configuration, key or secret was taken back, and return whether it was."""
        async with self.database.connection() as connection:
            end = await flow_ends.find_end(connection, flow.id)
        if end is None or not is_possible(flow.state, Move.END):
            return False
        message = f"The set-up of {flow.host or 'the domain'} was ended."
        error = FlowProblem(end, message, flow_ends.ENDS[end])
        await self._settle(flow, state=next_state(flow.state, Move.END), error=error, due_at=None)
        return True

    async def _inspect(self, flow: Flow) -> None:
        """Inspect the zone and make a plan; note each part of the inspection as it is done."""
        held = flow

        async def note(steps: InspectionSteps) -> None:
            nonlocal held
            async with self.database.transaction() as connection:
                held = await connect_flows.note(connection, held, looked=FlowInspection(steps))

        later = _abandoned_at(self.clock)
        try:
            found = await self.inspector.inspect(flow, note=note)
        except CouldNotInspect as error:
            state = next_state(flow.state, Move.INSPECTION_FAILED)
            await self._settle(held, state=state, error=error.as_problem(), plan=None, due_at=later)
            return
        await self._settle(
            held,
            state=next_state(flow.state, Move.PLAN),
            looked=found.found(),
            plan=found.plan,
            requested=found.requested,
            statuses=_statuses_of_plan(flow.domain or "", found),
            error=None,
            due_at=later,
        )

    async def _find_records(self, flow: Flow) -> None:
        """Look for the requested records, and move on when all are live."""
        now = self.clock.now()
        records = [each.record for each in flow.requested]
        found = await self.checker.check(flow.domain or "", records, tenant=flow.application_id)
        statuses = [RecordSighting(_STATUSES[verdict]) for verdict in found.verdicts]
        changes: Changes = {"statuses": statuses, "looks": flow.looks + 1}
        if flow.looks and statuses == [*flow.statuses]:  # nothing has come since the last look
            are_present = [each.is_live for each in statuses]
            servers = tuple(map(str, self.inspector.settings.service_servers))
            if spare := find_spare(flow.requested, flow.domain or "", are_present, servers):
                flow, statuses = _without_records(flow, spare), _left(statuses, spare)
                changes |= {"statuses": statuses, "requested": flow.requested, "looked": flow.looked}
        if all(each.is_live for each in statuses):
            state = next_state(flow.state, Move.RECORDS_FOUND)
            await self._settle(flow, complete=True, state=state, enrolments=enrolments_of(flow), due_at=now, **changes)
        elif flow.since is not None and is_over(flow.since, now):
            await self._time_out(flow, changes)
        else:
            await self._settle(flow, due_at=next_search(now, flow.looks + 1), **changes)

    async def _time_out(self, flow: Flow, changes: Changes) -> None:
        """End the search for records after `TIMEOUT`, with an event."""
        async with self.database.transaction() as connection:
            if await flow_ends.find_end(connection, flow.id, locks=True) is not None:
                await connect_flows.settle(connection, flow, **changes)  # it is due: the next step closes it
                return
            state = next_state(flow.state, Move.TIME_OUT)
            settled = await connect_flows.settle(connection, flow, **(changes | {"state": state, "due_at": None}))
            link = await self._link(connection, settled)
            await flow_events.record(connection, settled, "domain.propagation.timeout", connect_link=link)

    async def _link(self, connection: Connection, flow: Flow) -> str:
        """Create a sharing link at which the missing records can be set, and return its address."""
        seen = zip(flow.requested, flow.statuses, strict=True)
        missing = [as_json(each.record) for each, sighting in seen if not sighting.is_live]
        provenance = shares.Provenance(
            vouched=flow.vouched,
            configuration_id=flow.configuration_id,
            secret_generation=flow.secret_generation,
            flow_by_key=flow.by_key,
        )

        async def share(provenance: shares.Provenance) -> str:
            return await shares.share_records(
                connection,
                application_id=flow.application_id,
                domain=flow.domain,
                subdomain=flow.subdomain,
                records=missing,
                config=flow.shared_config,
                job_id=flow.job_id,
                user_id=flow.user_id,
                provenance=provenance,
            )

        try:
            share_id = await share(provenance)
        except shares.ParentEnded:  # its configuration vouches for nothing new
            share_id = await share(replace(provenance, vouched=False, configuration_id=None))
        return f"{self.base_url}/share/{share_id}"

    async def _enrol(self, flow: Flow) -> None:
        """Enrol the names of live records, and finish the flow."""
        enrolled = await self.enrolment.enrol(flow)
        async with self.database.transaction() as connection:
            state = next_state(flow.state, Move.FINISH)
            moment = self.clock.now()
            settled = await connect_flows.settle(connection, enrolled, state=state, due_at=None)
            if settled.added_at is None:
                await flow_events.record(connection, settled, "domain.added")
                await connect_flows.touch(connection, settled, added_at=moment)

    async def _read_back(self, flow: Flow) -> None:
        """Read the zone after an interrupted change, and settle what is in it."""
        keys = [entry.change.key for entry in flow.journal if entry.status in IN_ZONE]
        now = await self.inspector.read_sets(flow, keys)
        await self.settlement.settle(flow, now, _INTERRUPTED)

    async def _settle(self, flow: Flow, *, complete: bool = False, **changes: Any) -> None:
        """Store the changes of a step and end the claim, with the events they cause."""
        async with self.database.transaction() as connection:
            settled = await connect_flows.settle(connection, flow, **changes)
            if settled.state is State.ENROLLING:
                await connect_flows.wake(connection)  # due at once, and a person waits
            if complete:
                await flow_events.complete(connection, settled, self.clock.now())


def make_runner(
    database: Database, steps: FlowSteps, random: Random, *, poll_seconds: float = POLL_SECONDS
) -> Runner[Flow]:
    """Create the runner of flows. The role runs it."""
    return Runner(
        database, FlowQueue(steps.shared), steps.perform, concurrency=AT_ONCE, random=random, poll_seconds=poll_seconds
    )


def _without_records(flow: Flow, numbers: Collection[int]) -> Flow:
    """Return the flow without some of its records, and without what a person would type for them."""
    looked = None if flow.looked is None else flow.looked.without(numbers)
    return replace(flow, requested=_left(flow.requested, numbers), looked=looked)


def _left(items: Sequence[T], without: Collection[int]) -> list[T]:
    return [each for number, each in enumerate(items) if number not in without]


def _abandoned_at(clock: Clock) -> datetime:
    return clock.now() + timedelta(seconds=connect_flows.ABANDONED_SECONDS)


def _statuses_of_plan(domain: str, found: ZoneInspection) -> list[RecordSighting]:
    """Return what the inspection knows of the requested records already: those whose set is kept are there."""
    kept = {change.key for change in found.plan.changes if change.action == "keep"}
    return [
        RecordSighting("propagated" if (each.name(domain), each.record.type) in kept else "missing")
        for each in found.requested
    ]
