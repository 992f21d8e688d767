"""What requests waited for, and the table of it."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.table import Table

from bench.tenants.client import TimedResponse


@dataclass(frozen=True, slots=True)
class Waits:
    """The answers to requests of one kind.

    Those with another status than `expected` have failed: the goal is none. `goal_seconds` is what 99 of 100 may take.
    """

    name: str
    answers: Sequence[TimedResponse]
    expected: Collection[int] = (200,)
    goal_seconds: float | None = None

    @property
    def failed(self) -> int:
        """Return how many requests failed."""
        return sum(answer.status not in self.expected for answer in self.answers)

    @property
    def median(self) -> float:
        """Return the median in seconds."""
        return statistics.median(answer.seconds for answer in self.answers)

    @property
    def p99(self) -> float:
        """Return the smallest that 99 of 100 do not exceed."""
        ordered = sorted(answer.seconds for answer in self.answers)
        return ordered[-(-len(ordered) * 99 // 100) - 1]

    @property
    def longest(self) -> float:
        """Return the longest in seconds."""
        return max(answer.seconds for answer in self.answers)

    @property
    def is_met(self) -> bool:
        """Return whether none failed and the goal is met."""
        return not self.failed and (self.goal_seconds is None or self.p99 <= self.goal_seconds)

    def as_json(self) -> dict[str, object]:
        """Return the figures, as JSON can hold them."""
        return {
            "name": self.name,
            "requests": len(self.answers),
            "failed": self.failed,
            "median_seconds": self.median,
            "p99_seconds": self.p99,
            "longest_seconds": self.longest,
            "goal_seconds": self.goal_seconds,
            "met": self.is_met,
        }


def table(all_waits: Sequence[Waits], domains: int) -> Table:
    """Return the table of all waits."""
    table = Table(title=f"One application beside another ({domains:,} domains); no request may fail")
    for title in ("requests", "n", "failed", "median", "p99", "longest", "goal of p99", ""):
        table.add_column(title, justify="left" if title == "requests" else "right")
    for waits in all_waits:
        times = (f"{seconds * 1000:.1f} ms" for seconds in (waits.median, waits.p99, waits.longest))
        goal = "" if waits.goal_seconds is None else f"≤ {waits.goal_seconds * 1000:.0f} ms"
        verdict = "[green]met[/]" if waits.is_met else "[red]missed[/]"
        table.add_row(waits.name, str(len(waits.answers)), str(waits.failed), *times, goal, verdict)
    return table
