"""The fault run of flows in short: nothing lost, nothing doubled, nothing stuck. `bench.connect_faults` says how."""

from __future__ import annotations

import pytest

from bench.connect_faults.running import run
from bench.lab.knot import find_knot
from bench.lab.powerdns import find_powerdns

pytestmark = pytest.mark.skipif(find_knot() is None or find_powerdns() is None, reason="needs Debian's knot and pdns")


@pytest.mark.timeout(480)
async def test_under_faults_no_record_is_lost_or_doubled_and_no_flow_stuck() -> None:
    counts = await run(flows=4, seed=12466)

    assert counts.wrong == 0, counts.details
    assert counts.done["flows finished and undone"] == 4
    assert any(what.startswith("the API is killed") for what in counts.done)
