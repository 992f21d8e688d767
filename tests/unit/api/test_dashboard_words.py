"""How the dashboard writes values, and code within sentences."""

from __future__ import annotations

import pytest

from api.dashboard.rendering import with_codes
from api.dashboard.words import setting


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
        ({"from": 1}, "{'from': 1}"),
    ],
)
def test_values_of_the_audit_log_are_words(value: object, shown: str) -> None:
    assert setting(value) == shown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Run `frontage edge` now", "Run <code>frontage edge</code> now"),
        ("`<b>` & `", "`&lt;b&gt;` &amp; `"),
        ("`<script>`", "<code>&lt;script&gt;</code>"),
        ("", ""),
    ],
)
def test_text_between_backticks_is_code_and_markup_stays_text(text: str, html: str) -> None:
    assert with_codes(text) == html
