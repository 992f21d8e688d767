"""Deletes applications in the background, batch by batch, as `frontage app delete` does.

A deletion that ends with the process is continued from the application's page, or by the command.
"""

from __future__ import annotations

import asyncio

from common.db import application_removal
from common.db.pool import Database
from common.logs import get_logger

_log = get_logger("api.removals")


class Removals:
    """One a process; closed by `api.wiring.Services`. Mutable state: the deletions under way, by application."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running: dict[str, asyncio.Task[None]] = {}

    def begin(self, application_id: str) -> None:
        """Nothing if it is under way."""
        if application_id not in self._running:
            task = asyncio.create_task(self._remove(application_id), name=f"removal of {application_id}")
            self._running[application_id] = task
            task.add_done_callback(lambda _: self._running.pop(application_id, None))

    def is_running(self, application_id: str) -> bool:
        return application_id in self._running

    async def close(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _remove(self, application_id: str) -> None:
        try:
            await application_removal.remove_all(self._database, application_id)
        except Exception:  # noqa: BLE001 - the task's root; the page offers to continue
            _log.error("deletion of an application stopped", application=application_id, exc_info=True)
        else:
            _log.info("application deleted", application=application_id)
