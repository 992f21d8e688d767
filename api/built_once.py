"""Values that take long to build: built in a thread at their first use, while the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BuiltOnce(Generic[T]):
    """Used by the tasks of one event loop. Mutable state: the task that builds the value, or has built it."""

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._building: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Return the value, which the first caller's thread builds."""
        if self._building is None:
            self._building = asyncio.create_task(asyncio.to_thread(self._build), name="build once")
        return await asyncio.shield(self._building)  # a caller that leaves does not end it for the others
