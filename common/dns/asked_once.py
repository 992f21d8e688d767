"""Questions of one task, each asked once: a question that is being asked already is waited for, not repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class AskedOnce(Generic[T]):
    """Asks each question of a task once. Created for one task and closed with it.

    Mutable state: what was asked, and the answers.
    """

    def __init__(self) -> None:
        self._asked: dict[Hashable, asyncio.Task[T]] = {}

    def ask(self, question: Hashable, ask: Callable[[], Coroutine[Any, Any, T]]) -> Awaitable[T]:
        """Return the answer to a question, calling `ask` for it unless that was done before.

        A cancelled caller leaves the question to those that wait for it too.
        """
        asked = self._asked.get(question)
        if asked is None:
            asked = self._asked[question] = asyncio.create_task(ask())
        return asked if asked.done() else asyncio.shield(asked)

    def close(self) -> None:
        """Cancel the questions that are still open."""
        for asked in self._asked.values():
            asked.cancel()
