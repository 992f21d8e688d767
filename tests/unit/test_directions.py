"""What the import contracts cannot see: names of packages in strings and commands."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_product_does_not_name_the_package_above_it() -> None:
    named = re.compile(r"\bbench[./]|[\"']bench[\"']")
    product = [path for room in ("api", "common", "edge", "monitor") for path in (ROOT / room).rglob("*.py")]
    assert product
    assert [str(path) for path in product if named.search(path.read_text("utf-8"))] == []


def test_what_the_wheel_holds_of_bench_needs_no_other_bench() -> None:
    """`pyproject.toml` packs `bench.demo` and `bench.lab` only."""
    imported = re.compile(r"^\s*(?:from|import) bench(?!\.(?:demo|lab)\b)", re.MULTILINE)
    packed = [path for room in ("demo", "lab") for path in (ROOT / "bench" / room).rglob("*.py")]
    assert packed
    assert [str(path) for path in packed if imported.search(path.read_text("utf-8"))] == []
