"""Logs an outage of the database as one line when it begins and one when it ends, whatever else fails meanwhile.

All that fails by an outage is recognised by `is_outage` and logged at debug where it fails. A lock that was not had in
time, or a full disk, is no outage (`DatabaseBusy`): Postgres answers, and each such failure is logged for itself.
"""

from __future__ import annotations

import logging
import time

from common.errors import DatabaseBusy, DatabaseUnavailable
from common.logs import get_logger

_log = get_logger("common.db.outages")

_QUIET_SECONDS = 10.0


class OutageLog:
    """The outages that one process meets. Mutable state: the present or last one. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self._began_at = 0.0
        self._failed_at = 0.0
        self._failures = 0
        self._is_over = True

    def note_failure(self, error: DatabaseUnavailable, now: float) -> None:
        """Log the first failure of an outage; one soon after the last is of the same outage, answers between or not."""
        is_new = self._failures == 0 or (self._is_over and now - self._failed_at > _QUIET_SECONDS)
        self._failed_at = now
        if is_new:
            self._began_at, self._failures, self._is_over = now, 0, False
            _log.warning("the database is unavailable", error=str(error))
        self._failures += 1

    def note_answer(self, now: float) -> None:
        """Log the end of an outage, if there is one."""
        if self._is_over:
            return
        self._is_over = True
        seconds = round(now - self._began_at, 1)
        _log.info("the database answers again", seconds=seconds, failures=self._failures)


_outages: list[OutageLog] = []  # one a process, as its log is, once `log_outages` was called


def log_outages() -> None:
    """Log outages from now on: called by a role that serves. A command, or a start, prints itself why it fails."""
    if not _outages:
        _outages.append(OutageLog())


def note_failure(error: DatabaseUnavailable) -> None:
    """Note that the database was not reached, or gave no answer; called where the driver's errors are translated."""
    if is_outage(error):
        for log in _outages:
            log.note_failure(error, time.monotonic())


def note_answer() -> None:
    """Note that the database answers."""
    for log in _outages:
        log.note_answer(time.monotonic())


def is_outage(error: BaseException) -> bool:
    """Return whether `error` is of an outage, which is logged here and not where it fails."""
    return isinstance(error, DatabaseUnavailable) and not isinstance(error, DatabaseBusy)


def level_of(error: BaseException) -> int:
    """Return the level at which work logs that it failed by `error`: a warning, but debug in an outage."""
    return logging.DEBUG if is_outage(error) else logging.WARNING
