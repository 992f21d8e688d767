"""Endpoints that fail: warned about, then disabled, and never without notice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from common.db.webhook_endpoints import Endpoint
from common.endpoint_health import EndpointVerdict, disables_at, judge_endpoint

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


@pytest.mark.parametrize(
    ("failing", "warned", "verdict"),
    [
        (0, None, EndpointVerdict.NO_ACTION),
        (2.9, None, EndpointVerdict.NO_ACTION),
        (3.1, None, EndpointVerdict.WARN),
        (4.9, 1.8, EndpointVerdict.NO_ACTION),
        (5.1, 2, EndpointVerdict.DISABLE),
        (30, None, EndpointVerdict.WARN),
        (30, 0.9, EndpointVerdict.NO_ACTION),
        (30, 1.1, EndpointVerdict.DISABLE),
    ],
)
def test_days_of_failure_warn_and_then_disable(failing: float, warned: float | None, verdict: EndpointVerdict) -> None:
    endpoint = Endpoint(days_ago(failing), None if warned is None else days_ago(warned))
    assert judge_endpoint(endpoint, is_gone=False, now=NOW) is verdict


def test_gone_disables_at_once() -> None:
    assert judge_endpoint(Endpoint(NOW), is_gone=True, now=NOW) is EndpointVerdict.DISABLE


def test_end_is_told_from_the_warning_on() -> None:
    assert disables_at(Endpoint(days_ago(2))) is None
    assert disables_at(Endpoint(days_ago(3), NOW)) == days_ago(-2)
    assert disables_at(Endpoint(days_ago(30), NOW)) == days_ago(-1)
    assert disables_at(Endpoint(days_ago(30), days_ago(9), NOW)) is None
