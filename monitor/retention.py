"""Retention: the sweep that erases expired rows. Any number of monitors may sweep at the same time.

The rules are `common.db.retention.STEPS`. Steps take turns, one batch each, until none has anything left to erase, so
that a long step delays no other; a step that fails is put off until the next sweep, and the others go on. A batch that
takes longer than a statement may is tried again with fewer rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from common.clock import Clock
from common.db.outages import level_of
from common.db.pool import Database
from common.db.retention import STEPS, RetentionStep, oldest_seconds
from common.errors import DatabaseUnavailable
from common.logs import get_logger
from common.metrics import Family, Labels

_log = get_logger("monitor.retention")

PERIOD_SECONDS = 600.0
_ATTEMPTS = 3
_SHRINK = 4
_SMALLEST_BATCH_ROWS = 10


@dataclass(slots=True)
class StepProgress:
    """The work of a step since this process started. `batch_rows` adapts to what the database can do in time."""

    step: RetentionStep
    batch_rows: int
    rows_erased: int = 0
    seconds: float = 0.0
    failures: int = 0
    last_success_at: float | None = None
    oldest_seconds: float | None = None


class Retention:
    """Erases expired rows. One instance per monitor, whose ``__main__`` runs `run` as a task."""

    def __init__(
        self, database: Database, clock: Clock, random: Random, *, steps: Iterable[RetentionStep] = STEPS
    ) -> None:
        self._database = database
        self._clock = clock
        self._random = random
        self._progress = [StepProgress(step, step.batch_rows) for step in steps]

    async def run(self) -> None:
        """Sweep every ten minutes or so, until cancelled."""
        while True:
            await self.sweep()
            await asyncio.sleep(PERIOD_SECONDS * self._random.uniform(0.5, 1.5))

    async def sweep(self) -> None:
        """Erase all rows that have expired.

        Raises: the first error that is no outage, after the other steps are done.
        """
        sweeps = [_StepSweep(self._database, self._clock, progress) for progress in self._progress]
        unfinished = sweeps
        while unfinished:
            unfinished = [sweep for sweep in unfinished if await sweep.erase_batch()]
        for error in (sweep.error for sweep in sweeps):
            if error is not None and not isinstance(error, DatabaseUnavailable):
                raise error

    def families(self) -> list[Family]:
        """Return the measurements, by step."""
        progress = self._progress
        return [
            Family(
                "frontage_retention_rows_erased",
                "Rows erased.",
                "counter",
                ("step",),
                samples=_by_step((p, p.rows_erased) for p in progress),
            ),
            Family(
                "frontage_retention_seconds",
                "Time spent erasing.",
                "counter",
                ("step",),
                samples=_by_step((p, p.seconds) for p in progress),
            ),
            Family(
                "frontage_retention_failures",
                "Sweeps in which the step failed.",
                "counter",
                ("step",),
                samples=_by_step((p, p.failures) for p in progress),
            ),
            Family(
                "frontage_retention_last_success_timestamp_seconds",
                "When the step last had nothing left to erase.",
                "gauge",
                ("step",),
                samples=_by_step((p, p.last_success_at) for p in progress),
            ),
            Family(
                "frontage_retention_oldest_row_seconds",
                "Age of the oldest row the step looks after.",
                "gauge",
                ("step",),
                samples=_by_step((p, p.oldest_seconds) for p in progress),
            ),
        ]


class _StepSweep:
    """Performs one step's part of one sweep."""

    def __init__(self, database: Database, clock: Clock, progress: StepProgress) -> None:
        self._database = database
        self._clock = clock
        self._progress = progress
        self._attempts = 0
        self._rows = 0
        self._seconds = 0.0
        self.error: Exception | None = None

    async def erase_batch(self) -> bool:
        """Erase one batch, and return whether the step may have more to erase in this sweep."""
        progress = self._progress
        began_at = self._clock.monotonic()
        try:
            async with self._database.transaction() as connection:
                batch = await progress.step.erase(connection, progress.batch_rows)
            is_done = batch.examined < progress.batch_rows
            self._rows += batch.erased
            progress.rows_erased += batch.erased
            if is_done:
                async with self._database.connection() as connection:
                    progress.oldest_seconds = await oldest_seconds(connection, progress.step)
        except Exception as error:  # noqa: BLE001 - the step's root: the other steps go on
            return self._fail(error)
        finally:
            self._spend(self._clock.monotonic() - began_at)
        progress.batch_rows = min(2 * progress.batch_rows, progress.step.batch_rows)
        self._attempts = 0
        if is_done:
            self._finish()
        return not is_done

    def _finish(self) -> None:
        """Record that the step has nothing left to erase."""
        progress = self._progress
        progress.last_success_at = self._clock.now().timestamp()
        if self._rows:
            _log.info(
                "expired rows erased",
                step=progress.step.name,
                rows=self._rows,
                seconds=round(self._seconds, 3),
                oldest_row_seconds=progress.oldest_seconds,
            )

    def _fail(self, error: Exception) -> bool:
        """Shrink the batch after an error, and return whether to try it again, at most `_ATTEMPTS` times in a sweep."""
        progress = self._progress
        self._attempts += 1
        progress.batch_rows = max(progress.batch_rows // _SHRINK, min(_SMALLEST_BATCH_ROWS, progress.step.batch_rows))
        if isinstance(error, DatabaseUnavailable) and self._attempts < _ATTEMPTS:
            return True
        self.error = error
        progress.failures += 1
        words = "retention step put off"
        _log.log(level_of(error), words, step=progress.step.name, rows=self._rows, error=str(error))
        return False

    def _spend(self, seconds: float) -> None:
        self._seconds += seconds
        self._progress.seconds += seconds


def _by_step(values: Iterable[tuple[StepProgress, float | None]]) -> dict[Labels, list[float]]:
    """Return samples by step, without the steps that have no value."""
    return {(each.step.name,): [float(value)] for each, value in values if value is not None}
