"""Lets a connection give up the loop: the bounds of what it does at once, and the queue in which the rest waits.

A connection whose input needs more work than its bounds allow pauses its reading, and `DeferredWork` calls it again in
a later turn of the loop. Meanwhile the loop serves all others. The bounds, each worth a few tenths of a millisecond:

    edge.http.chunks.STEPS_AT_ONCE     chunks and trailers of a body, request or response
    HEADS_AT_ONCE                      pipelined requests that the edge answers itself
    INTERIM_BYTES_AT_ONCE              interim responses
    RECORDS_AT_ONCE                    TLS records of a client or an origin (`edge.transport.tls_stream` has more)
    BYTES_AT_ONCE                      bytes of a body or a tunnel: the loop else reads 32 times as much in a row

Flights of TLS handshakes, the most expensive steps there are, always wait here: requests that are ready come first.
What many connections or streams are due for together (deadlines, ends, announcements) waits in queues of its own, so
that neither keeps the other waiting.
Steps of tasks that many may take at once, as dialling, wait in `LoopTurns`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

HEADS_AT_ONCE: Final = 8
INTERIM_BYTES_AT_ONCE: Final = 8_192
RECORDS_AT_ONCE: Final = 256
BYTES_AT_ONCE: Final = 131_072

_TURN_SECONDS: Final = 0.000_1


class DeferredWork:
    """Runs a worker's deferred work, in order, in later turns of the loop: one expensive piece in each.

    Deferred work checks whether it is still wanted: its connection may have ended in the meantime.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._loop = loop
        self._clock = clock
        self._queue: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, work: Callable[[], None]) -> None:
        """Have the work run in a later turn of the loop."""
        if not self._queue:
            self._loop.call_soon(self._run)
        self._queue.append(work)

    def add_all(self, pieces: Iterable[Callable[[], None]]) -> None:
        """Have each of the pieces run, behind those that were added before."""
        for piece in pieces:
            self.add(piece)

    def finish(self) -> None:
        """Run all work at once: there is no later turn."""
        while self._queue:
            self._queue.popleft()()

    def _run(self) -> None:
        """Run one piece of work at least, and more until `_TURN_SECONDS` have passed."""
        queue, until = self._queue, self._clock() + _TURN_SECONDS
        try:
            while queue:
                queue[0]()
                queue.popleft()
                if self._clock() >= until:
                    break
        except BaseException:
            queue.popleft()
            raise
        finally:
            if queue:
                self._loop.call_soon(self._run)


class LoopTurns:
    """Lets a worker's tasks run an expensive step one in each turn of the loop, in the order in which they ask."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False

    async def take(self) -> None:
        """Wait for a turn in which no other task runs its step; return at once if there is none."""
        if self._is_taken:
            turn: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._is_taken = True
            self._loop.call_soon(self._give_next)

    def _give_next(self) -> None:
        self._is_taken = False
        while self._waiting and not self._is_taken:
            turn = self._waiting.popleft()
            if not turn.done():  # cancelled
                turn.set_result(None)
                self._is_taken = True
                self._loop.call_soon(self._give_next)
