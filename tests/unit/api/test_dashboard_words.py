"""How the dashboard writes values, and code within sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from api.dashboard.rendering import with_codes
from api.dashboard.words import NO_BREAK, ago, share, unicode_name


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


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [(0, 10, "none"), (3, 0, "none"), (1, 2_000_000, "1 (under 0.1 %)"), (1_200, 2_400, "1,200 (50.0 %)")],
)
def test_a_share_breaks_before_its_brackets_only(part: int, whole: int, shown: str) -> None:
    assert share(part, whole).replace(NO_BREAK, " ") == shown
    assert share(part, whole).count(" ") <= 1


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("shop.customer.com", ""),
        ("xn--mnchen-3ya.customer.com", "münchen.customer.com"),
        ("xn--mgbh0fb.customer.com", "مثال.customer.com"),
        ("xn--a.customer.com", ""),  # no A-label of any name
        ("_frontage.xn--mnchen-3ya.com", ""),  # nothing that IDNA decodes
    ],
)
def test_a_name_with_a_labels_has_a_spelling_for_people(name: str, shown: str) -> None:
    assert unicode_name(name) == shown


@pytest.mark.parametrize(
    ("days", "shown"),
    [(1.5, "in 1 day"), (61, "in 61 days"), (89, "in 89 days"), (130, "in 4 months"), (800, "in 2 years")],
)
def test_a_date_within_a_certificates_lifetime_is_shown_in_days(days: float, shown: str) -> None:
    now = datetime(2026, 3, 4, tzinfo=UTC)
    assert ago(now + timedelta(days=days), now) == shown
