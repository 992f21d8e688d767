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
_SAMPLES = 120


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

    Created and run by the admin listener; holds a minute of samples.
    """

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SAMPLES)

    async def run(self) -> None:
        """Sample until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due_at = loop.time() + _SAMPLE_SECONDS
            await asyncio.sleep(_SAMPLE_SECONDS)
            self._samples.append(max(0.0, loop.time() - due_at))

    def families(self) -> list[Family]:
        """Return the worst delay in the last minute, in seconds."""
        worst = max(self._samples, default=0.0)
        return [Family.of("frontage_loop_lag_seconds", "Worst delay of the event loop in a minute.", "gauge", worst)]
