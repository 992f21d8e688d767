"""Slots of webhook attempts: endpoints that hang pass through the quick slots within moments."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime

from common.db.deliveries import ClaimedDelivery
from monitor.webhooks.slots import MOST_AT_ONCE, MOST_QUICK, MOST_SLOW, QUICK_SECONDS, FreeSlots, Slots


class StillClock:
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


def a_claim(number: int, application_id: str, *, is_slow: bool = False) -> ClaimedDelivery:
    return ClaimedDelivery(
        event_id=str(number),
        application_id=application_id,
        fence=1,
        attempts=1,
        failures=0,
        is_superseded=False,
        log=[],
        event_type="webhook.test",
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        domain=None,
        subdomain=None,
        sequence=None,
        fields={},
        url="",
        is_slow=is_slow,
        secret=b"",
        previous_secret=None,
    )


def test_attempts_at_quick_endpoints_leave_the_quick_slots_after_a_moment() -> None:
    clock, running = StillClock(), ExitStack()
    slots = Slots(clock)
    with running:
        for number in range(MOST_QUICK):
            running.enter_context(slots.hold(a_claim(number, f"hanging-{number}")))
        assert slots.free() == FreeSlots(0, MOST_SLOW, [])
        clock.seconds = QUICK_SECONDS
        assert slots.free().quick == MOST_QUICK
    assert slots.free() == FreeSlots(MOST_QUICK, MOST_SLOW, [])


def test_application_whose_attempt_hangs_starts_no_other_meanwhile() -> None:
    clock = StillClock()
    slots = Slots(clock)
    with slots.hold(a_claim(1, "hanging")):
        clock.seconds = QUICK_SECONDS
        with slots.hold(a_claim(2, "good")):
            assert slots.free().hanging == ["hanging"]
    assert slots.free().hanging == []


def test_attempts_at_slow_endpoints_take_no_quick_slots() -> None:
    clock = StillClock()
    slots = Slots(clock)
    with ExitStack() as running:
        for number in range(MOST_SLOW):
            running.enter_context(slots.hold(a_claim(number, "slow", is_slow=True)))
        clock.seconds = 60
        assert slots.free() == FreeSlots(MOST_QUICK, 0, [])


def test_three_hundred_endpoints_that_begin_to_hang_at_once_fit_beside_the_other_slots() -> None:
    assert MOST_AT_ONCE - MOST_QUICK - MOST_SLOW >= 300
