"""What the import contracts cannot see: names of packages in strings and commands."""

from __future__ import annotations

import ast
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


ALSO_RECORDED_IN = {
    "common/db/applications.py",  # a cname target that another application has proven
    "common/db/audit.py",
    "common/db/connect_configurations.py",
    "common/db/domains.py",  # enrolments, of the API, a flow, a batch and a file
    "common/db/monitored_domains.py",
    "common/db/ownership.py",  # a domain that another application has proven
}


def test_what_is_changed_is_recorded_by_services() -> None:
    """Handlers, pages and commands record nothing; of the rows, only those that are changed by several processes do."""

    def records(path: Path) -> bool:
        calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        return any(
            isinstance(called, ast.Attribute)
            and called.attr.startswith("record")
            and ast.unparse(called.value) == "audit"
            for called in calls
        )

    product = [path for room in ("api", "common", "edge", "monitor") for path in (ROOT / room).rglob("*.py")]
    recording = {str(path.relative_to(ROOT)) for path in product if records(path)}
    assert {path for path in recording if not path.startswith("api/services/")} <= ALSO_RECORDED_IN
