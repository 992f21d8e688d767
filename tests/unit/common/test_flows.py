"""What a flow's row holds: read into types, and written back as it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from common.db.connect_flows import read_flow
from tests.unit.stored_flow import STORED_FLOW

RUNNING = {"steps": {"provider": "running", "records": "running", "ways": "waiting"}}
LEFT = {"url": "https://dc.test", "state": "secret"}


@pytest.mark.parametrize(
    "column", ["requested", "looked", "plan", "journal", "statuses", "enrolments", "handover", "error"]
)
def test_a_column_is_written_as_it_was_read(column: str) -> None:
    assert written(getattr(read_flow(STORED_FLOW), column)) == STORED_FLOW[column]


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("looked", RUNNING),
        ("looked", STORED_FLOW["looked"] | {"conflicts": None, "server": None}),
        ("handover", LEFT),
        ("looked", None),
        ("plan", None),
        ("handover", None),
        ("error", None),
    ],
)
def test_what_is_not_there_yet_stays_away(column: str, stored: Any) -> None:
    assert written(getattr(read_flow(STORED_FLOW | {column: stored}), column)) == stored


def test_a_row_of_an_open_domain_connect_keeps_why_it_is_open() -> None:
    provider = STORED_FLOW["looked"]["provider"] | {"domainConnect": {"isOpen": True}}
    looked = STORED_FLOW["looked"] | {"provider": provider}
    assert written(read_flow(STORED_FLOW | {"looked": looked}).looked) == looked


def written(value: Any) -> Any:
    """What is stored of a column's value."""
    if isinstance(value, Iterable):
        return [each.as_json() for each in value]
    return None if value is None else value.as_json()
