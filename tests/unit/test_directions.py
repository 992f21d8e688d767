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


SHARED_SERVICES = ("common/enrolment/changes.py", "common/monitored_changes.py")
"""Of changes that the API, flows, batches and imports make alike."""

APPLICATIONS = ("api/services/application_changes.py",)
ENROLMENTS, MONITORED = SHARED_SERVICES
RECORDED_CHANGES = {
    "applications.create_application": APPLICATIONS,
    "applications.update_application": APPLICATIONS,
    "connect_configurations.register": ("api/services/configurations.py",),
    "connect_configurations.remove": ("api/services/configurations.py", "common/db/key_products.py"),
    "domains.enrol_by_hand": (ENROLMENTS,),
    "domains.power": (ENROLMENTS,),
    "domains.remove": (ENROLMENTS,),
    "domains.secure": (ENROLMENTS,),
    "domains.update": (ENROLMENTS,),
    "key_products.end_of_key": ("common/db/user_keys.py",),  # returns what the caller records
    "monitored_domains.change": (MONITORED,),
    "monitored_domains.insert": (MONITORED,),
    "monitored_domains.remove": (MONITORED,),
    "ownership.revoke_ownership": (
        ENROLMENTS,
        "common/db/applications.py",
    ),  # the latter returns what its caller records
    "user_keys.revoke": ("api/services/credentials.py",),
}
"""Statements whose change belongs into the audit log, and who calls each: a call elsewhere would lose the entry."""


def list_product() -> dict[str, ast.Module]:
    paths = [path for room in ("api", "common", "edge", "monitor") for path in (ROOT / room).rglob("*.py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in paths}


def names_used(tree: ast.Module) -> set[str]:
    """Return the functions of query modules that a module uses, as ``module.function``, however it imports them."""
    modules: dict[str, str] = {}
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "common.db":
            modules |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("common.db."):
            used |= {f"{node.module.rpartition('.')[2]}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            modules |= {each.name: each.name.rpartition(".")[2] for each in node.names if "common.db" in each.name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (module := modules.get(ast.unparse(node.value))):
            used.add(f"{module}.{node.attr}")
    return used


def test_what_is_changed_is_recorded_by_services() -> None:
    """Handlers, pages, commands, the monitor's work and the statements beneath record nothing."""
    recording = {
        path
        for path, tree in list_product().items()
        if any(used.startswith("audit.record") for used in names_used(tree))
    }
    assert recording >= set(SHARED_SERVICES)
    assert [path for path in recording if not path.startswith("api/services/") and path not in SHARED_SERVICES] == []


def test_no_change_goes_round_the_service_that_records_it() -> None:
    callers: dict[str, set[str]] = {change: set() for change in RECORDED_CHANGES}
    for path, tree in list_product().items():
        for used in names_used(tree) & RECORDED_CHANGES.keys():
            callers[used].add(path)
    assert callers == {change: set(services) for change, services in RECORDED_CHANGES.items()}
