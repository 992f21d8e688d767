"""Assigns upstream connections to requests: bookkeeping only, O(1) a decision, no I/O.

Two pieces of state an origin: its idle connections, and the waiters. `Pool` returns an idle connection or a `Decision`
(open a connection, wait, busy); `edge.upstream.dispatcher` acts on it.

A request that must not be sent twice gets a young connection (`take_young`), else a new one. That one is made in place
of an idle one (`make_room`), so that such requests do not add to the origin's connections; the oldest few are left
alone, to show how long the origin keeps them (`edge.upstream.idle_times`).

Invariant: ``open`` counts the connections of an origin that are idle, leased or being made, never above the bound.
Idle connections are used last in, first out, so that those not needed grow old and are closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

from edge.routing.route import Origin

KEPT_OLD: Final = 4
"""Idle connections that `make_room` leaves alone."""


class Idle(Protocol):
    """A connection, as the pool knows it."""

    idle_since: float

    @property
    def is_closing(self) -> Callable[[], bool]:
        """Return the function that says whether the connection is closing."""


C = TypeVar("C", bound=Idle)
W = TypeVar("W")


class Decision(Enum):
    """What becomes of a request for a connection."""

    OPEN = "open"  # a place was reserved: make a connection
    WAIT = "wait"
    BUSY = "busy"


class _OriginState(Generic[C, W]):
    __slots__ = ("idle", "open", "waiters")

    def __init__(self) -> None:
        self.idle: deque[C] = deque()
        self.waiters: deque[W] = deque()
        self.open = 0

    def __repr__(self) -> str:
        return f"<{self.open} open, {len(self.idle)} idle, {len(self.waiters)} waiting>"


class Pool(Generic[C, W]):
    """Assigns a worker's connections. Bounds are per origin."""

    def __init__(self, *, max_open: int, max_waiters: int) -> None:
        self._max_open = max_open
        self._max_waiters = max_waiters
        self._origins: dict[Origin, _OriginState[C, W]] = {}

    def __repr__(self) -> str:
        return f"<Pool {self._origins!r}>"

    @property
    def open_count(self) -> int:
        """Return how many connections are idle, leased or being made."""
        return sum(state.open for state in self._origins.values())

    def take(self, origin: Origin) -> C | None:
        """Return an idle connection, now leased; None if there is none worth using."""
        state = self._origins.get(origin)
        if state is None:
            return None
        idle = state.idle
        while idle:
            connection = idle.pop()
            is_closing = connection.is_closing  # an attribute of an instance: to call it as a method costs more
            if not is_closing():
                return connection
        return None

    def take_young(self, origin: Origin, idle_since: float) -> C | None:
        """Return the connection given back last, now leased, if that was after `idle_since`; None if there is none."""
        state = self._origins.get(origin)
        if state is None:
            return None
        idle = state.idle
        while idle:
            connection = idle[-1]
            is_closing = connection.is_closing()
            if not is_closing and connection.idle_since <= idle_since:
                return None
            idle.pop()
            if not is_closing:
                return connection
        return None

    def oldest(self, origin: Origin) -> C | None:
        """Return the connection that has been idle longest; it stays idle."""
        state = self._origins.get(origin)
        return state.idle[0] if state is not None and state.idle else None

    def make_room(self, origin: Origin) -> C | None:
        """Take out an idle connection in whose place a new one is made; the caller closes it.

        None if none needs to be: few are idle, and one more may be open.
        """
        state = self._origins.get(origin)
        if state is None or not state.idle:
            return None
        if state.open >= self._max_open:
            return state.idle.popleft()
        if len(state.idle) <= KEPT_OLD:
            return None
        connection = state.idle[KEPT_OLD]
        del state.idle[KEPT_OLD]
        return connection

    def request(self, origin: Origin, waiter: W) -> Decision:
        """Decide about a request for which `take` had nothing."""
        state = self._origins.get(origin)
        if state is None:
            state = self._origins[origin] = _OriginState()
        if state.open < self._max_open:
            state.open += 1
            return Decision.OPEN
        if len(state.waiters) < self._max_waiters:
            state.waiters.append(waiter)
            return Decision.WAIT
        return Decision.BUSY

    def is_ample(self, origin: Origin) -> bool:
        """Return whether most of the origin's connections are free."""
        state = self._origins.get(origin)
        return state is None or (not state.waiters and 2 * (state.open - len(state.idle)) < self._max_open)

    def has_waiter(self, origin: Origin) -> bool:
        """Return whether a connection that is given back goes to a request that waits."""
        state = self._origins.get(origin)
        return state is not None and bool(state.waiters)

    def withdraw(self, origin: Origin, waiter: W) -> None:
        """Forget a waiter that no longer wants a connection."""
        state = self._origins.get(origin)
        if state is not None and waiter in state.waiters:
            state.waiters.remove(waiter)

    def give_back(self, origin: Origin, connection: C, now: float) -> W | None:
        """End a lease of a connection that can serve again. Returns the waiter it now belongs to, if any."""
        state = self._origins[origin]
        if state.waiters:
            return state.waiters.popleft()
        connection.idle_since = now
        state.idle.append(connection)
        return None

    def forget(self, origin: Origin) -> W | None:
        """Count a connection less: it is gone, or could not be made. Return a waiter whose place was reserved."""
        state = self._origins[origin]
        state.open -= 1
        if state.waiters:
            state.open += 1
            return state.waiters.popleft()
        if not state.open:
            del self._origins[origin]
        return None

    def expired(self, idle_before: float) -> list[C]:
        """Take out the connections idle since before then; the caller closes them."""
        old: list[C] = []
        for state in self._origins.values():
            while state.idle and state.idle[0].idle_since < idle_before:
                old.append(state.idle.popleft())
        return old
