"""Questions of one task, each asked once: a question that is being asked already is waited for, not repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from common.dns.questions import Answer


class AskedOnce:
    """Created for one task and closed with it. Mutable state: what was asked, and the answers."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, asyncio.Future[Answer]] = {}

    async def ask(self, question: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """A cancelled caller leaves the question to those that wait for it too."""
        asked = self._asked.get(question)
        if asked is None:
            asked = self._asked[question] = asyncio.ensure_future(ask())
        return asked.result() if asked.done() else await asyncio.shield(asked)

    def close(self) -> None:
        for asked in self._asked.values():
            asked.cancel()
