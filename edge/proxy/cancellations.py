"""Cancels exchanges of streams a few at a time, when a client ends many of them at once.

A connection of HTTP/2 may end with a hundred exchanges under way. To cancel one closes its connection to the origin and
costs tens of microseconds; here each is one piece of deferred work, so that other connections are served in between.
Streams of all connections of a worker wait in one queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from edge.transport.deferred_work import DeferredWork


class Cancellable(Protocol):
    """A stream whose exchange the client does not wait for any more."""

    def cancel_exchange(self, *, disconnected: bool) -> None:
        """Cancel the exchange, unless it has ended. `disconnected`: the client left, and was not sent away."""


class Cancellations:
    """The streams of a worker whose exchanges are to be cancelled. Created and finished by its `WorkerContext`."""

    def __init__(self, deferred: DeferredWork) -> None:
        self._deferred = deferred
        self._waiting: deque[tuple[Cancellable, bool]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, streams: Iterable[Cancellable], *, disconnected: bool) -> None:
        """Cancel the streams' exchanges in later turns of the loop; a stream may be added twice."""
        waited = bool(self._waiting)
        self._waiting.extend((stream, disconnected) for stream in streams)
        if self._waiting and not waited:
            self._deferred.add(self._run)

    def _run(self) -> None:
        if self._waiting:  # not finished in the meantime
            self._cancel_next()
        if self._waiting:
            self._deferred.add(self._run)

    def _cancel_next(self) -> None:
        stream, disconnected = self._waiting.popleft()
        stream.cancel_exchange(disconnected=disconnected)

    def finish(self) -> None:
        """Cancel all that wait, at once: the worker ends."""
        while self._waiting:
            self._cancel_next()
