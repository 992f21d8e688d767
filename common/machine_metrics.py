"""Measurements of the machine and the event loop that a role runs on.

Owns no listener: each role's admin port shows them. The clock is shown as it is at the moment of a scrape, so that
Prometheus can compare it with its own.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from pathlib import Path

from common.clock import Clock, SystemClock
from common.metrics import Family

_SAMPLE_SECONDS = 0.5
_KEPT_SECONDS = 60.0


def measure_machine(directory: Path, clock: Clock | None = None) -> list[Family]:
    """Measure this machine's clock, and the disk that holds `directory`, if it exists."""
    now = (clock or SystemClock()).now().timestamp()
    families = [Family.of("frontage_clock_timestamp_seconds", "This machine's clock, since 1970.", "gauge", now)]
    try:
        disk = os.statvfs(directory)
    except OSError:
        return families
    free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    return [
        *families,
        Family.of("frontage_disk_free_bytes", "Free on the disk of the state directory.", "gauge", free),
        Family.of("frontage_disk_size_bytes", "Size of the disk of the state directory.", "gauge", size),
    ]


class LoopLag:
    """Measures how late the event loop runs what is due.

    Created and run by the admin listener, and by each worker of an edge; holds a minute of samples.
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()  # when each was taken, and the delay

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            await self.sleep(_SAMPLE_SECONDS)

    async def sleep(self, seconds: float) -> None:
        """Sleep, and sample by how much longer it took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(seconds)
        ended = loop.time()
        self._samples.append((ended, max(0.0, ended - began - seconds)))
        while self._samples[0][0] < ended - _KEPT_SECONDS:
            self._samples.popleft()

    def families(self) -> list[Family]:
        """Return the worst delay in the last minute, in seconds."""
        worst = max((delay for _, delay in self._samples), default=0.0)
        return [Family.of("frontage_loop_lag_seconds", "Worst delay of the event loop in a minute.", "maximum", worst)]
