"""Origins that sent bytes no request asked for: for a while their connections serve one request each.

Such bytes, a body behind a 204 or more than the stated length, may reach a connection after its next request was sent,
and would be read as the response to it. Nothing on that connection shows the difference, but the origin's other
connections do: bytes that come while none is awaited. Pure; time is passed in.
"""

from __future__ import annotations

from typing import Final

from edge.routing.route import Origin

DISTRUST_SECONDS: Final = 600.0
_MAX_REMEMBERED: Final = 10_000


class DistrustedOrigins:
    """One a worker, owned by the dispatcher. Times are monotonic seconds. Empty, it is false."""

    def __init__(self) -> None:
        self._until: dict[Origin, float] = {}  # the earliest first

    def __repr__(self) -> str:
        return f"<DistrustedOrigins {len(self._until)}>"

    def __bool__(self) -> bool:
        return bool(self._until)

    def __contains__(self, origin: Origin) -> bool:
        return origin in self._until

    def add(self, origin: Origin, now: float) -> None:
        self._until.pop(origin, None)
        if len(self._until) >= _MAX_REMEMBERED:
            self._until.pop(next(iter(self._until)))
        self._until[origin] = now + DISTRUST_SECONDS

    def expire(self, now: float) -> None:
        while self._until and (first := next(iter(self._until.items())))[1] <= now:
            del self._until[first[0]]
