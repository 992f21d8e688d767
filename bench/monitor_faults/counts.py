"""The counts of a fault run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from rich.table import Table


@dataclass(slots=True)
class MonitorCounts:
    """What happened, and above all what went wrong; `details` describe it in words."""

    seconds: float = 0.0
    answers: int = 0
    faulty_answers: int = 0
    resolver_outages: int = 0
    monitors_killed: int = 0
    apis_killed: int = 0
    databases_killed: int = 0
    database_children_killed: int = 0
    losses: int = 0
    returns: int = 0
    writes_answered: int = 0
    writes_refused: int = 0
    writes_unanswered: int = 0
    batches: int = 0
    events: int = 0
    slowest_event_seconds: float = 0.0
    webhooks: int = 0
    faulty_receptions: int = 0
    superseded: int = 0
    false_alarms: int = 0
    missed_transitions: int = 0
    lost_webhooks: int = 0
    lost_writes: int = 0
    details: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """Return how often something went wrong."""
        return self.false_alarms + self.missed_transitions + self.lost_webhooks + self.lost_writes

    def add_detail(self, words: str) -> None:
        """Add a detail."""
        self.details.append(f"{datetime.now(UTC):%H:%M:%S} {words}")

    def table(self) -> Table:
        """Return the counts as a table."""
        table = Table(title="the monitor under faults", show_header=False)
        table.add_column(justify="right")
        for name, value in asdict(self).items():
            if name != "details":
                table.add_row(f"{value:,.0f}", name.replace("_", " "))
        return table
