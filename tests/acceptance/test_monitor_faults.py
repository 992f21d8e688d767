"""The monitor's fault run in short: nothing false, nothing missed, nothing lost. `bench.monitor_faults` says how."""

from __future__ import annotations

import pytest

from bench.monitor_faults.running import run


@pytest.mark.timeout(240)
async def test_under_faults_nothing_false_nothing_missed_nothing_lost() -> None:
    counts = await run(seconds=15, domains=40, changing=6, partners=6, seed=5)

    assert counts.wrong == 0, counts.details
    assert counts.monitors_killed > 0
    assert counts.apis_killed > 0
    assert counts.databases_killed + counts.database_children_killed > 0
    assert counts.losses >= 6
    assert counts.returns == counts.losses
    assert counts.webhooks + counts.superseded >= 12
    assert counts.faulty_answers > 100
    assert counts.writes_answered > 20
    assert counts.batches > 0
