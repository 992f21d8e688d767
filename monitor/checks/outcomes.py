"""Outcomes: what checks found, written many at a time, with the events they cause in the same transaction.

A finished check hands in its outcome and waits. While one transaction runs, the next ones' outcomes gather: a
busy monitor writes hundreds of rows in one statement, an idle one writes each at once.

Rules
    a transaction has a bound in records too: a few hundred domains that lost hundreds each would take longer than
        Postgres gives a statement, and be tried again for ever
    those with few records go first, so that the others do not make them late
    those that may raise an alarm, and then need the guard's lock and more statements, have a queue of their own
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.connect.configuration import MOST_RECORDS
from common.db import checks, events, monitor_health, monitored_domains, shares
from common.db.checks import Check, CheckOutcome
from common.db.events import NewEvent
from common.db.pool import Connection, Database
from common.errors import DatabaseUnavailable, FenceLost
from common.logs import get_logger
from common.records import as_json
from monitor.checks.health import HELD
from monitor.checks.held_alarms import FEWEST_DOMAINS, WINDOW_SECONDS, LossTally
from monitor.checks.transitions import ReportDecision, Transition, decide_report
from monitor.claims import retry_until_available

_log = get_logger("monitor.checks.outcomes")

MOST_AT_ONCE = 400
MOST_ALARMS_AT_ONCE = 100
MOST_RECORDS_AT_ONCE = 4000


@dataclass(frozen=True, slots=True)
class Finished:
    """A check that has come to its verdicts. `evidence` is JSON."""

    check: Check
    transition: Transition
    evidence: list[dict[str, Any]]
    due_at: datetime
    has_long_ttl: bool = False


Waiting = tuple[Finished, asyncio.Future[bool]]
"""An outcome, and where to say whether it counted."""


class _WriteQueue:
    """Outcomes that wait to be written. Mutable state: these outcomes."""

    def __init__(self, most_at_once: int) -> None:
        self._most_at_once = most_at_once
        self._waiting: list[Waiting] = []
        self._is_work = asyncio.Event()

    def add(self, waiting: Waiting) -> None:
        """Add an outcome."""
        self._waiting.append(waiting)
        self._is_work.set()

    async def take(self) -> list[Waiting]:
        """Wait for outcomes, and take as many as one transaction writes, but at least one."""
        await self._is_work.wait()
        self._waiting.sort(key=_size)
        records = itertools.accumulate(map(_size, self._waiting[: self._most_at_once]))
        count = max(1, sum(so_far <= MOST_RECORDS_AT_ONCE for so_far in records))
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        if not self._waiting:
            self._is_work.clear()
        return [each for each in taken if not each[1].done()]

    def cancel(self) -> None:
        """Cancel the outcomes that are not written."""
        for _, written in self._waiting:
            written.cancel()


class Outcomes:
    """Writes the outcomes of checks. Created by `Checking`, which runs `run` as a task.

    Mutable state: the outcomes handed in and not yet taken.
    """

    def __init__(self, database: Database, base_url: str, on_events: Callable[[], None]) -> None:
        """Create the writer; `on_events` is called after events were recorded, to start their delivery."""
        self._database = database
        self._base_url = base_url
        self._on_events = on_events
        self._quiet = _WriteQueue(MOST_AT_ONCE)
        self._alarming = _WriteQueue(MOST_ALARMS_AT_ONCE)

    async def write(self, finished: Finished) -> None:
        """Write the outcome of a check, together with others, and return when it is committed.

        Raises: `FenceLost` when it no longer counts; `DatabaseUnavailable` when Postgres stays away.
        """
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        queue = self._alarming if finished.transition.may_alarm or finished.transition.is_restored else self._quiet
        queue.add((finished, written))
        if not await written:
            raise FenceLost(f"the check of {finished.check.domain} no longer counts")

    async def run(self) -> None:
        """Write until cancelled; the leases of unwritten outcomes then lapse."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write_for_ever(self._quiet), name="checks: write outcomes")
            tasks.create_task(self._write_for_ever(self._alarming), name="checks: write alarms")

    async def _write_for_ever(self, queue: _WriteQueue) -> None:
        try:
            while True:
                await self._write_all(await queue.take())
        finally:
            queue.cancel()

    async def _write_all(self, taken: Sequence[Waiting]) -> None:
        """Write the outcomes, and let each waiting check know whether it counted or what went wrong.

        An outcome that Postgres refuses fails alone; the others are written one by one.
        """
        try:
            kept = await retry_until_available(lambda: self._record([finished for finished, _ in taken]))
        except DatabaseUnavailable as error:
            _fail(taken, error)
        except Exception as error:  # noqa: BLE001 - each who waits deals with it as with its own
            if len(taken) == 1:
                _fail(taken, error)
            else:
                for each in taken:
                    await self._write_all([each])
        except BaseException:
            for _, written in taken:
                written.cancel()
            raise
        else:
            for finished, written in taken:
                if not written.done():
                    written.set_result(finished.check.id in kept)

    async def _record(self, finished: Sequence[Finished]) -> set[str]:
        """Write the outcomes in one transaction, with their events, and return the ids of the checks that counted."""
        async with self._database.transaction() as connection:
            tally, is_released = await self._tally_losses(connection, finished)
            reports = [
                decide_report(
                    each.check,
                    each.transition,
                    is_mass=tally.holds(each.check.application_id),
                    is_released=is_released,
                )
                for each in finished
            ]
            outcomes = [_outcome(each, report) for each, report in zip(finished, reports, strict=True)]
            kept = await checks.record_outcomes(connection, outcomes)
            eventful = [
                (each, report)
                for each, report in zip(finished, reports, strict=True)
                if report.event is not None and each.check.id in kept
            ]
            for each, report in eventful:
                await self._record_event(connection, each, report)
            if any(report.held_at == each.check.claimed_at for each, report in zip(finished, reports, strict=True)):
                await monitor_health.record(connection, is_healthy=False, reason=HELD)  # not only when next measured
        if eventful:
            self._on_events()
        return kept

    async def _tally_losses(self, connection: Connection, finished: Sequence[Finished]) -> tuple[LossTally, bool]:
        """Return the tally that decides which alarms are held, and whether an operator has released them.

        The lock is taken only if one of the checks may raise an alarm.
        """
        if not any(each.transition.may_alarm for each in finished):
            return LossTally({}, {}), False
        is_released = await checks.lock_guard(connection)
        ids = [each.check.id for each in finished]
        turned = Counter(each.check.application_id for each in finished if each.transition.has_turned)
        turned += await checks.count_turned(connection, others_than=ids, within_seconds=WINDOW_SECONDS)
        if turned.total() < FEWEST_DOMAINS:
            return LossTally({}, turned), is_released
        rechecked = Counter(each.check.application_id for each in finished if each.check.seen.state != "unchecked")
        rechecked += await checks.count_rechecked(connection, others_than=ids, within_seconds=WINDOW_SECONDS)
        tally = LossTally(rechecked, turned)
        if tally.is_mass and not is_released:
            _log.warning("alarms are held: too many at once", turned=turned.total(), rechecked=rechecked.total())
        return tally, is_released

    async def _record_event(self, connection: Connection, finished: Finished, report: ReportDecision) -> None:
        """Record the event of an outcome, with a link to repair the records."""
        check, transition = finished.check, finished.transition
        present = [as_json(record) for record in transition.present or ()]
        missing = [as_json(record) for record in transition.missing or ()]
        share = await shares.share_records(
            connection,
            application_id=check.application_id,
            domain=check.domain,
            subdomain=check.subdomain,
            records=missing or present,
            config=_configuration(check, missing or present),
            job_id=check.job_id,
            user_id=check.user_id,
            provenance=shares.Provenance(vouched=await monitored_domains.is_vouched(connection, check.id)),
        )
        assert report.event is not None, "only decisions with an event are recorded"
        fields = {
            "user_id": check.user_id,
            "job_id": check.job_id,
            "data": {"records_propagated": present, "records_non_propagated": missing},
            "connect_link": f"{self._base_url}/share/{share}",
        }
        event = NewEvent(check.application_id, report.event, check.domain, check.subdomain, fields)
        await events.record(connection, event)


def _size(waiting: Waiting) -> int:
    """Return how many records the outcome has."""
    return len(waiting[0].check.records)


def _fail(taken: Sequence[Waiting], error: Exception) -> None:
    """Let each waiting check fail with this error."""
    for _, written in taken:
        if not written.done():
            written.set_exception(error)


def _outcome(finished: Finished, report: ReportDecision) -> CheckOutcome:
    """Build the row of an outcome."""
    transition = finished.transition
    return CheckOutcome(
        check=finished.check,
        state=transition.state,
        present=transition.present,
        missing=transition.missing,
        has_found_missing=transition.has_found_missing,
        has_turned=transition.has_turned,
        is_complete=transition.is_complete,
        reported=report.reported,
        held_at=report.held_at,
        evidence=finished.evidence,
        due_at=finished.due_at,
        has_long_ttl=finished.has_long_ttl,
    )


def _configuration(check: Check, records: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the configuration for the connect modal; None for more records than it takes."""
    if len(records) > MOST_RECORDS:
        return None
    name = f"{check.subdomain}.{check.domain}" if check.subdomain else check.domain
    return {"prefilledDomain": name, "dnsRecords": list(records)}
