"""Origins, and addresses of them, that are remembered for a while because of what they did. Time is passed in.

Distrusted are those that sent bytes no request asked for: their connections serve one request each. Such bytes, a body
behind a 204 or more than the stated length, may reach a connection after its next request was sent, and would be read
as the response to it. Nothing on that connection shows the difference, but the origin's other connections do: bytes
that come while none is awaited.

Invalid are those whose answer was not valid HTTP, so that a visitor got an error: the node's lease reports them.

Failed are addresses that could not be connected to, or closed a connection before any byte of a response: the origin's
other addresses are tried first (`edge.upstream.address_order`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar

DISTRUST_SECONDS: Final = 600.0
INVALID_SECONDS: Final = 60.0
FAILED_SECONDS: Final = 60.0
_MAX_REMEMBERED: Final = 10_000

K = TypeVar("K", bound=Hashable)


class Remembered(dict[K, float]):
    """The keys and until when each is remembered, in monotonic seconds, the earliest first.

    Owned by one object of the worker.
    """

    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def add(self, key: K, now: float) -> None:
        """Remember the key from now on."""
        self.pop(key, None)
        if len(self) >= _MAX_REMEMBERED:
            del self[next(iter(self))]
        self[key] = now + self._seconds

    def expire(self, now: float) -> None:
        """Forget the keys whose time is over."""
        while self and self[first := next(iter(self))] <= now:
            del self[first]
