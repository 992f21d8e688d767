"""When alarms are too many, and when the checks are not well."""

import pytest

from common.db.checks import Backlog
from monitor.checks.health import diagnose
from monitor.checks.mass import Tally

HOUR = 3600.0


@pytest.mark.parametrize(
    ("turned", "rechecked", "is_mass"),
    [(49, 49, False), (50, 50, True), (50, 249, True), (50, 250, False), (200, 1000, False), (201, 1000, True)],
)
def test_fifty_domains_and_over_a_fifth_are_too_many(turned: int, rechecked: int, is_mass: bool) -> None:
    assert Tally(rechecked, turned).is_mass is is_mass


def test_all_is_well() -> None:
    assert diagnose(Backlog(0, 3.0), verdicts=1000, unknown=100, interval_seconds=HOUR) is None
    assert diagnose(Backlog(0, 0.0), verdicts=0, unknown=0, interval_seconds=HOUR) is None


def test_what_is_not_well_is_said() -> None:
    assert "12 domains" in (diagnose(Backlog(12, 0.0), 0, 0, HOUR) or "")
    assert "1000 seconds late" in (diagnose(Backlog(0, 1000.0), 0, 0, HOUR) or "")
    assert "without an answer" in (diagnose(Backlog(0, 0.0), 100, 51, HOUR) or "")
