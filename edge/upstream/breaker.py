"""A passive breaker for each origin: one that could not be reached again and again is left alone for a while.

    closed    connections are made; failures in a row are counted            → open at the K-th within the window
    open      none is made until `retry_at`; requests are answered at once   → a probe, one a pause
    probing   one attempt is under way, the others still wait for `retry_at` → closed by success, else open again

It saves clients the wait for a time-out, and an origin that comes back the rush. An attempt that fails quickly (a
refused connection) costs neither side much, so its pause stays a second and a restarted origin is found at once; the
pauses after slow failures grow. A success at one worker closes the breakers of the others (`take_recovered`).

Time and chance are passed in. An origin that never failed costs nothing here. Only attempts to connect count: an
origin that answers, whatever it answers, is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from itertools import islice, takewhile
from typing import Final

from common.origin_faults import FailingOrigin, OriginFault, OriginIdentity
from edge.routing.route import Origin

# Failures further apart are not one outage. Five attempts one after the other that time out take 25 s.
_WINDOW_SECONDS: Final = 60.0
_FIRST_PAUSE_SECONDS: Final = 1.0
_QUICK_SECONDS: Final = 1.0  # an attempt that failed sooner made no visitor wait
_GROWTH: Final = 2.0  # of the pause, with each slow failure
_JITTER: Final = 0.25  # at most taken off the pause, so that workers and edges do not probe in step
_MAX_REMEMBERED: Final = 10_000
MOST_REPORTED: Final = 50
"""Origins in one report. On a node where more fail, those that failed last are reported."""


class _Trouble:
    """What is remembered of an origin that failed."""

    __slots__ = ("failed_at", "failures", "fault", "is_open", "opened_at", "pause_seconds", "retry_at", "since")

    def __init__(self, now: float, fault: OriginFault) -> None:
        self.failures = 0
        self.since = now  # the first of the failures in a row
        self.failed_at = now  # the last one
        self.fault = fault
        self.is_open = False
        self.opened_at = 0.0  # again with each failed probe
        self.pause_seconds = 0.0
        self.retry_at = 0.0

    def __repr__(self) -> str:
        return f"<{self.failures} failures, {'open' if self.is_open else 'closed'}>"


class Breaker:
    """Decides for a worker's dispatcher, which owns it. All times are monotonic seconds."""

    def __init__(self, *, failures: int, max_pause_seconds: float, random: Callable[[], float]) -> None:
        self._failures = failures
        self._max_pause_seconds = max_pause_seconds
        self._random = random
        self._troubles: dict[Origin, _Trouble] = {}  # the one that failed last at the end
        self._recovered: dict[OriginIdentity, None] = {}  # closed by a probe of this worker; the order they came in

    def __repr__(self) -> str:
        return f"<Breaker {self._troubles!r}>"

    @property
    def open_count(self) -> int:
        """Return how many breakers are open."""
        return sum(trouble.is_open for trouble in self._troubles.values())

    def admits(self, origin: Origin, now: float) -> bool:
        """Return whether a connection may be attempted now. True while open makes the attempt the probe."""
        trouble = self._troubles.get(origin)
        if trouble is None or not trouble.is_open:
            return True
        if now < trouble.retry_at:
            return False
        trouble.retry_at = now + trouble.pause_seconds  # a probe that is given up leaves the next one its turn
        return True

    def succeeded(self, origin: Origin) -> None:
        """Close the origin's breaker: an attempt has connected."""
        trouble = self._troubles.pop(origin, None)
        if trouble is not None and trouble.is_open and len(self._recovered) < _MAX_REMEMBERED:
            self._recovered[OriginIdentity(*origin[:-1])] = None

    def take_recovered(self) -> list[OriginIdentity]:
        """Return origins that a probe reached since this was last called, for the other workers.

        At most `MOST_REPORTED`, the rest next time.
        """
        taken = list(islice(self._recovered, MOST_REPORTED))
        for identity in taken:
            del self._recovered[identity]
        return taken

    def note_recovered(self, identity: OriginIdentity) -> None:
        """Close the breaker: another worker reached the origin."""
        for is_own_api in (False, True):
            self._troubles.pop(Origin._make((*astuple(identity), is_own_api)), None)

    def failing(self, now: float) -> list[FailingOrigin]:
        """Return origins to which the last attempt failed, within the last minute: at most `MOST_REPORTED`."""
        recent = takewhile(lambda each: now - each[1].failed_at <= _WINDOW_SECONDS, reversed(self._troubles.items()))
        return [
            FailingOrigin(OriginIdentity(*origin[:-1]), trouble.fault)
            for origin, trouble in islice(recent, MOST_REPORTED)
        ]

    def failed(self, origin: Origin, fault: OriginFault, *, started_at: float, now: float) -> None:
        """Note that an attempt begun at `started_at` did not connect."""
        trouble = self._troubles.pop(origin, None)
        if trouble is None or (not trouble.is_open and now - trouble.since > _WINDOW_SECONDS):
            self._make_room()
            trouble = _Trouble(now, fault)
        self._troubles[origin] = trouble
        trouble.failed_at, trouble.fault = now, fault
        if trouble.is_open and started_at < trouble.opened_at:
            return  # it was under way when the breaker opened: nothing new
        trouble.failures += 1
        if trouble.failures >= self._failures:
            self._open(trouble, now, is_quick=now - started_at < _QUICK_SECONDS)

    def _open(self, trouble: _Trouble, now: float, *, is_quick: bool) -> None:
        grows = trouble.is_open and not is_quick
        pause = trouble.pause_seconds * _GROWTH if grows else _FIRST_PAUSE_SECONDS
        trouble.is_open = True
        trouble.opened_at = now
        trouble.pause_seconds = min(pause, self._max_pause_seconds)
        trouble.retry_at = now + trouble.pause_seconds * (1 - _JITTER * self._random())

    def _make_room(self) -> None:
        if len(self._troubles) >= _MAX_REMEMBERED:
            self._troubles.pop(next(iter(self._troubles)))
