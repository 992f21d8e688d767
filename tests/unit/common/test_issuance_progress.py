"""How long orders wait for the limit of a CA."""

from __future__ import annotations

import pytest

from common.db.ca_ledger import HOUR_SECONDS
from common.db.issuance_progress import seconds_until_ordered


@pytest.mark.parametrize(
    ("waiting", "used", "share", "hours"),
    [
        (5_000, [180], 180, 83.3),
        (5_000, [0], 180, 80.3),
        (100, [0], 180, 0.0),
        (5_000, [180, 180], 180, 41.7),
        (1, [300], 180, 0.02),  # what more urgent orders use beyond the share is no slot of these
    ],
)
def test_each_slot_comes_free_once_in_three_hours(waiting: int, used: list[int], share: int, hours: float) -> None:
    assert seconds_until_ordered(waiting, used, share) / HOUR_SECONDS == pytest.approx(hours, abs=0.05)
