"""How the audit log's values are written."""

from __future__ import annotations

import pytest

from api.rules.audit_values import changes_in_words, value_in_words


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


def test_what_changed_is_shown_with_both_sides() -> None:
    assert changes_in_words({"error_page": True, "paths": ["/a"]}, {"error_page": False}) == [
        ("error page", "on", "off"),
        ("paths", "/a", None),
    ]


def test_what_was_created_is_shown_without_what_it_does_not_have() -> None:
    assert changes_in_words(None, {"url": "https://a.test", "webhook_url": None, "maintenance": False, "ttl": 0}) == [
        ("url", None, "https://a.test"),
    ]
