"""Learns how long each origin keeps idle connections, so that a request that must not be sent twice meets no close.

An origin that closes an idle connection cannot know that a request is on its way, and the request is lost without an
answer (RFC 9112 §9.3.1). A GET is then sent once more; a POST must not be. It goes only to a connection that has been
idle for at most half of what the origin is known to stand, and for a quarter of a second less: timers of origins are
coarse, and the request needs its time to arrive.

Known are what origins state (``Keep-Alive: timeout=5``), the idle times after which they closed, and those that
connections survived. A close counts for `_CLOSE_SECONDS`, however many others survive: an origin may be several
servers. Times are passed in.
"""

from __future__ import annotations

from typing import Final

from edge.routing.route import Origin

_CLOSE_SECONDS: Final = 60.0
_MARGIN_SECONDS: Final = 0.25  # at least; half of the known time where that is more
_UNKNOWN_SECONDS: Final = 0.1  # the bound for an origin of which nothing is known
_MAX_REMEMBERED: Final = 10_000


class _Known:
    __slots__ = ("closed_until", "longest", "seconds")

    longest: float  # asked for with each request that must not be sent twice

    def __init__(self, seconds: float) -> None:
        self.closed_until = 0.0  # until then `seconds` only fall
        self.set(seconds)

    def set(self, seconds: float) -> None:
        self.seconds = seconds  # that an idle connection stands
        self.longest = max(0.0, min(seconds / 2, seconds - _MARGIN_SECONDS))


class IdleTimes:
    """Keeps what a worker's dispatcher, its owner, learns. Idle times in seconds; `now` is monotonic."""

    def __init__(self, *, most: int = _MAX_REMEMBERED) -> None:
        self._most = most  # origins
        self._origins: dict[Origin, _Known] = {}  # the one that changed last at the end

    def __repr__(self) -> str:
        return f"<IdleTimes of {len(self._origins)} origins>"

    def longest(self, origin: Origin) -> float:
        """Return how long a connection may have been idle to get a request that must not be sent twice."""
        known = self._origins.get(origin)
        return _UNKNOWN_SECONDS if known is None else known.longest

    def note_stated(self, origin: Origin, seconds: float, now: float) -> None:
        """Note how long the origin states to keep idle connections."""
        known = self._known(origin, seconds)
        known.set(min(known.seconds, seconds) if now < known.closed_until else seconds)

    def note_survived(self, origin: Origin, seconds: float, now: float) -> None:
        """Note that a connection was still open after so long."""
        known = self._known(origin, seconds)
        if now >= known.closed_until:
            known.set(max(known.seconds, seconds))

    def note_closed(self, origin: Origin, seconds: float, now: float) -> None:
        """Note that the origin closed a connection that was idle for so long."""
        known = self._known(origin, seconds)
        known.set(min(known.seconds, seconds))
        known.closed_until = now + _CLOSE_SECONDS

    def _known(self, origin: Origin, seconds: float) -> _Known:
        known = self._origins.pop(origin, None)
        if known is None:
            known = _Known(seconds)
            if len(self._origins) >= self._most:
                del self._origins[next(iter(self._origins))]
        self._origins[origin] = known
        return known
