"""The clock: passed to every decision that depends on time, so that tests can set it.

Leases and due times are Postgres' business and use its clock; this one is for what a process decides alone.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of the present time."""

    def now(self) -> datetime:
        """Return the present, timezone-aware, in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for measuring and never for dates."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the system's time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the system's monotonic seconds."""
        return time.monotonic()
