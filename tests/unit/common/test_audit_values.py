"""How the audit log's values are written."""

from __future__ import annotations

import pytest

from common.audit_values import value_in_words


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "on"),
        (False, "off"),
        (None, "none"),
        ("", "none"),
        ([], "none"),
        (["/static", "/media"], "/static, /media"),
        (0, "0"),
        ({}, "none"),
        ({"from": 1}, "from 1"),
        ([{"type": "A", "ttl": 300}, {"type": "TXT"}], "type A, ttl 300; type TXT"),
    ],
)
def test_values_of_the_audit_log_are_words(value: object, shown: str) -> None:
    assert value_in_words(value) == shown
