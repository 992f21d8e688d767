"""Plans of queries, as ``explain (format json)`` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """This node and all below it."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)
