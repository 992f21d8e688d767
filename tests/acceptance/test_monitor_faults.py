"""The monitor's fault run in short: nothing false, nothing missed, nothing lost. `bench.monitor_faults` says how."""

from __future__ import annotations

import pytest

from bench.monitor_faults.counts import MonitorCounts
from bench.monitor_faults.running import run


def is_enough(counts: MonitorCounts) -> bool:
    return (
        min(counts.monitors_killed, counts.apis_killed, counts.batches) > 0
        and counts.databases_killed + counts.database_children_killed > 0
        and counts.losses >= 6
        and counts.faulty_answers > 100
        and counts.writes_answered > 20
    )


@pytest.mark.timeout(1200)
async def test_under_faults_nothing_false_nothing_missed_nothing_lost() -> None:
    counts = await run(seconds=15, domains=40, changing=6, partners=6, seed=5, is_enough=is_enough)

    assert counts.wrong == 0, counts.details
    assert is_enough(counts)
    assert counts.returns == counts.losses
    assert counts.webhooks + counts.superseded >= 12
