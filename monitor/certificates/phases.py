"""Phases: records how long each part of an order took, beside the order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from common.clock import Clock


class Phases:
    """Seconds by phase, in the order they happened. One instance for each attempt at an order, which owns it."""

    def __init__(self, clock: Clock, earlier: Mapping[str, float] | None = None) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = dict(earlier or {})

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time spent inside to the phase, whether it succeeds or not."""
        started = self._clock.monotonic()
        try:
            yield
        finally:
            self.add(phase, self._clock.monotonic() - started)

    def add(self, phase: str, seconds: float) -> None:
        """Add seconds to the phase."""
        self._seconds[phase] = round(self._seconds.get(phase, 0.0) + seconds, 6)

    def as_seconds(self) -> dict[str, float]:
        """Return the seconds of each phase."""
        return dict(self._seconds)
