"""The clock: passed to every decision that depends on time, so that tests can set it.

Leases and due times are Postgres' business and use its clock; this one is for what a process decides alone.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present, timezone-aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; for measuring, never for dates."""


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
