"""Deletes applications in the background, batch by batch, as `frontage app delete` does.

A deletion goes on until it is done: it is tried again after a failure, and every API process looks for deletions whose
process has ended, and continues them.
"""

from __future__ import annotations

import asyncio

from common.db import application_removal
from common.db.outages import level_of
from common.db.pool import Database
from common.errors import DatabaseUnavailable
from common.logs import get_logger
from common.retry_pauses import RetryPauses

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_LOOK_SECONDS = 30.0
_log = get_logger("api.services.removals")


class Removals:
    """Deletions of applications that run in this process. `api.wiring.Services` closes it.

    Mutable state: the deletions under way, by application, and the task that looks for those of ended processes.
    `look_seconds`: between two looks; `first_pause_seconds`: before a deletion that failed is tried again.
    """

    def __init__(
        self,
        database: Database,
        look_seconds: float = _LOOK_SECONDS,
        *,
        first_pause_seconds: float = _FIRST_PAUSE_SECONDS,
    ) -> None:
        self._database = database
        self._first_pause_seconds = first_pause_seconds
        self._look_seconds = look_seconds
        self._running: dict[str, asyncio.Task[None]] = {}
        self._resuming: asyncio.Task[None] | None = None

    async def resume(self) -> None:
        """Continue, from now on, every deletion that was begun and is not done."""
        self._resuming = asyncio.create_task(self._resume(), name="deletions to continue")

    def begin(self, application_id: str) -> None:
        """Nothing if it is under way."""
        if application_id not in self._running:
            task = asyncio.create_task(self._remove(application_id), name=f"removal of {application_id}")
            self._running[application_id] = task
            task.add_done_callback(lambda _: self._running.pop(application_id, None))

    def is_running(self, application_id: str) -> bool:
        """Return whether the deletion of an application runs here."""
        return application_id in self._running

    async def close(self) -> None:
        """End the deletions under way, which another process continues."""
        tasks = [*self._running.values(), *([self._resuming] if self._resuming else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _resume(self) -> None:
        pauses = RetryPauses(first=self._first_pause_seconds, longest=_LONGEST_PAUSE_SECONDS)
        while True:
            try:
                async with self._database.connection() as connection:
                    interrupted = await application_removal.list_interrupted(connection)
            except DatabaseUnavailable as error:
                _log.log(level_of(error), "deletions to continue could not be read", error=str(error))
                await asyncio.sleep(pauses.next_seconds())
            except Exception:  # noqa: BLE001 - the task's root; it is tried again
                _log.error("deletions to continue could not be read", exc_info=True)
                await asyncio.sleep(pauses.next_seconds())
            else:
                for application_id in interrupted:
                    self.begin(application_id)
                pauses.reset()
                await asyncio.sleep(self._look_seconds)

    async def _remove(self, application_id: str) -> None:
        pauses = RetryPauses(first=self._first_pause_seconds, longest=_LONGEST_PAUSE_SECONDS)
        while True:
            try:
                await application_removal.remove_all(self._database, application_id)
            except DatabaseUnavailable as error:
                words = "deletion of an application waits for the database"
                _log.log(level_of(error), words, application=application_id, error=str(error))
                await asyncio.sleep(pauses.next_seconds())
            except Exception:  # noqa: BLE001 - the task's root; it is tried again
                _log.error("deletion of an application failed", application=application_id, exc_info=True)
                await asyncio.sleep(pauses.next_seconds())
            else:
                _log.info("application deleted", application=application_id)
                return
