"""The timeline of a certificate: what an order waits for, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from api.dashboard.timeline import TimelineStep, steps
from common.db.certificates import InService
from common.db.orders import OrderState

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CERTIFICATE = InService("internal", NOW, NOW + timedelta(days=90), NOW, NOW)
ORDER = OrderState("issued", "renewal", 0, None, NOW, NOW + timedelta(days=60), {}, NOW, NOW, None, None, None)
PUT_OFF = replace(ORDER, finished_at=None, last_error="the limit is reached", due_at=NOW + timedelta(hours=2))
WAITS = TimelineStep("Waits", "now", "in 2 hours", "The limit is reached. It goes on at 21 Nov 2026, 14:00:00 UTC.")


def titles(order: OrderState) -> list[str]:
    return [step.title for step in steps(CERTIFICATE, order, NOW)]


def test_a_certificate_that_waits_for_nothing_renews_by_itself() -> None:
    assert titles(ORDER) == ["Renewal", "Issued", "Live on every edge", "Renews by itself", "Expires"]


def test_a_renewal_that_was_put_off_waits_with_its_reason() -> None:
    assert titles(PUT_OFF) == ["Renewal", "Issued", "Live on every edge", "Waits", "Expires"]
    assert WAITS in steps(CERTIFICATE, PUT_OFF, NOW)


def test_an_attempt_is_under_way_or_waits() -> None:
    running = replace(PUT_OFF, state="running", attempts=2)
    assert "Being issued" not in titles(running)
    assert WAITS in steps(None, running, NOW)
    assert "Being issued" in titles(replace(running, due_at=NOW))
    assert "Waits" not in titles(replace(running, due_at=NOW))


def test_only_steps_that_an_owner_can_act_upon_are_shown() -> None:
    phases = {"wait": 0.1, "validation": 2.0, "key": 0.1, "store": 0.1, "live": 1.0}
    assert titles(replace(ORDER, phases=phases))[:3] == ["Renewal", "Validated by the CA", "Issued"]
