"""What the dashboard's pages have in common."""

from __future__ import annotations

import re
from importlib import resources


def test_every_page_with_live_parts_says_whether_they_are_up_to_date() -> None:
    pages = [
        (path.name, text)
        for path in resources.files("api.dashboard").joinpath("templates").iterdir()
        if re.search(r"\bdata-live=", text := path.read_text("utf-8"))
    ]
    assert len(pages) > 5
    assert [name for name, text in pages if "m.live()" not in text] == []
