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


class DistrustedOrigins(dict[Origin, float]):
    """Until when each is distrusted, in monotonic seconds, the earliest first. Owned by the worker's dispatcher."""

    __slots__ = ()

    def add(self, origin: Origin, now: float) -> None:
        self.pop(origin, None)
        if len(self) >= _MAX_REMEMBERED:
            del self[next(iter(self))]
        self[origin] = now + DISTRUST_SECONDS

    def expire(self, now: float) -> None:
        while self and self[first := next(iter(self))] <= now:
            del self[first]
