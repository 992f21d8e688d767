"""Locks by name within the process: of many requests about one name, one at a time asks the database for it.

The others wait here rather than in Postgres, where each would hold a connection of the pool, and would fail once it has
waited as long as a lock may take. Between processes the database's own lock decides (`common.db.locks`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from common.errors import DatabaseUnavailable

_SECONDS = 15.0


class NameLocks:
    """Holds a lock for each name that a request waits for, or works on. A process makes one."""

    def __init__(self, *, within_seconds: float = _SECONDS) -> None:
        self._within_seconds = within_seconds
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Wait for those that came before, then hold the name for the block. Raises: `DatabaseUnavailable`."""
        lock = self._locks.setdefault(name, asyncio.Lock())
        try:
            async with asyncio.timeout(self._within_seconds):
                await lock.acquire()
        except TimeoutError as error:
            raise DatabaseUnavailable("the database did not work off the requests about this name in time") from error
        try:
            yield
        finally:
            lock.release()
