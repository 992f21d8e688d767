"""What a fault run of flows counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table


@dataclass(slots=True)
class FlowCounts:
    """The counts of a fault run.

    `done` is what happened, by its name; the other numbers are what went wrong, and `details` describe it in words.
    """

    done: Counter[str] = field(default_factory=Counter)
    records_lost: int = 0
    records_doubled: int = 0
    foreign_records_touched: int = 0
    flows_stuck: int = 0
    effects_doubled: int = 0
    details: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """Return how often something went wrong."""
        return (
            self.records_lost
            + self.records_doubled
            + self.foreign_records_touched
            + self.flows_stuck
            + self.effects_doubled
        )

    def as_json(self) -> dict[str, Any]:
        """Return all counts, as JSON can hold them."""
        return {name: getattr(self, name) for name in self.__slots__} | {"done": dict(self.done)}

    def table(self) -> Table:
        """Return the counts as a table."""
        table = Table(title="Flows while everything fails", box=box.SIMPLE_HEAD, show_header=False)
        table.add_column(justify="right")
        table.add_column()
        for what, times in sorted(self.done.items()):
            table.add_row(f"{times:,}", what)
        table.add_section()
        for name in self.__slots__:
            if isinstance(number := getattr(self, name), int):
                table.add_row(f"[{'red' if number else 'green'}]{number}[/]", f"{name.replace('_', ' ')}, should be 0")
        return table
