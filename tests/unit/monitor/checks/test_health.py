"""When alarms are too many, and when the checks are not well."""

import pytest

from common.db.checks import Backlog
from monitor.checks.health import diagnose
from monitor.checks.held_alarms import LossTally

HOUR = 3600.0


@pytest.mark.parametrize(
    ("turned", "rechecked", "is_mass"),
    [(49, 49, False), (50, 50, True), (50, 249, True), (50, 250, False), (200, 1000, False), (201, 1000, True)],
)
def test_fifty_domains_and_over_a_fifth_are_too_many(turned: int, rechecked: int, is_mass: bool) -> None:
    assert LossTally({"app": rechecked}, {"app": turned}).holds("app") is is_mass


@pytest.mark.parametrize(
    ("turned", "rechecked", "is_held"),
    [
        ({"other": 60, "app": 1}, {"other": 60, "app": 50}, False),  # one partner's own doing
        ({"other": 60}, {"other": 60, "app": 50}, False),
        ({"other": 60, "app": 11}, {"other": 60, "app": 50}, False),  # so many are unchanged
        ({"other": 60, "app": 50}, {"other": 60, "app": 50}, True),  # none is unchanged
        ({"other": 1000, "app": 2}, {"other": 1000, "app": 2}, True),
        ({"other": 60, "third": 60, "app": 1}, {"other": 60, "third": 60, "app": 50}, False),  # nor two's
        ({"other": 30, "app": 30}, {"other": 30, "app": 30}, True),
        ({"other": 10, "app": 60}, {"other": 1000, "app": 100}, False),
    ],
)
def test_losses_of_others_hold_up_no_alarm(turned: dict[str, int], rechecked: dict[str, int], is_held: bool) -> None:
    assert LossTally(rechecked, turned).holds("app") is is_held


def test_all_is_well() -> None:
    assert diagnose(Backlog(0, 3.0), verdicts=1000, unknown=100, interval_seconds=HOUR) is None
    assert diagnose(Backlog(0, 0.0), verdicts=0, unknown=0, interval_seconds=HOUR) is None


def test_what_is_not_well_is_said() -> None:
    assert "12 domains" in (diagnose(Backlog(12, 0.0), 0, 0, HOUR) or "")
    assert "1000 seconds late" in (diagnose(Backlog(0, 1000.0), 0, 0, HOUR) or "")
    assert "without an answer" in (diagnose(Backlog(0, 0.0), 100, 51, HOUR) or "")
