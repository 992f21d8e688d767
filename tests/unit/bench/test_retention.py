"""bench.retention misses no step."""

from __future__ import annotations

from bench.retention import FILL, SMALL_TABLES
from common.db.retention import STEPS


def test_each_step_is_measured_or_known_to_be_small() -> None:
    assert set(FILL) | SMALL_TABLES == {step.name for step in STEPS}
