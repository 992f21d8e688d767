from __future__ import annotations

from datetime import UTC, datetime

import pytest

from edge.proxy.access_log import timestamp


@pytest.mark.parametrize(
    ("unix_seconds", "expected"),
    [
        (0.0, "1970-01-01T00:00:00.000+00:00"),
        (1_795_448_699.5, "2026-11-23T15:44:59.500+00:00"),
        (1_795_448_699.9999, "2026-11-23T15:44:59.999+00:00"),
        (1_795_448_700.0625, "2026-11-23T15:45:00.062+00:00"),
    ],
)
def test_time_is_stated_in_utc_with_milliseconds(unix_seconds: float, expected: str) -> None:
    assert timestamp(unix_seconds) == expected
    assert datetime.fromisoformat(expected).tzinfo == UTC
