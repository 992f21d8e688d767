"""Imports, declared dependencies and the tested versions (`.ci/constraints.txt`) agree."""

from __future__ import annotations

import ast
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.children import ROOT

FILE = Path(ROOT) / ".ci/constraints.txt"
CONFIGURATION = tomllib.loads((Path(ROOT) / "pyproject.toml").read_text("utf-8"))
PROJECT = CONFIGURATION["project"]
BUILD = CONFIGURATION["build-system"]["requires"]
PRODUCT = frozenset({"api", "common", "edge", "monitor"})
EXTRAS = PROJECT["optional-dependencies"]
ASKED = {
    *PROJECT["dependencies"],
    *(each for name in ("providers", "otlp", "embedded", "test") for each in EXTRAS[name]),
}
DIRECT = sorted(each for each in ASKED if not each.startswith(f"{PROJECT['name']}["))  # an extra of our own


def versions() -> dict[str, str]:
    lines = FILE.read_text("utf-8").splitlines()
    pairs = [(line.partition("==")[0], line.partition("==")[2]) for line in lines if line and not line.startswith("#")]
    return dict(pairs)


def imported() -> set[str]:
    """The distributions that the product's own modules import, wherever in them."""
    modules: set[str] = set()
    for path in (path for package in PRODUCT for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    known = packages_distributions()  # of those that are installed
    asked = {canonicalize_name(Requirement(each).name) for each in DIRECT}
    found = [
        sorted(map(canonicalize_name, known.get(module, ()))) for module in modules - sys.stdlib_module_names - PRODUCT
    ]
    return {
        next((each for each in names if each in asked), names[0]) for names in found if names
    }  # some share a module


def test_what_the_product_imports_is_what_it_declares() -> None:
    declared = {canonicalize_name(Requirement(each).name) for each in PROJECT["dependencies"]}
    optional = (*EXTRAS["providers"], *EXTRAS["embedded"], *EXTRAS["otlp"], *BUILD)
    assert imported() - {canonicalize_name(Requirement(each).name) for each in optional} == declared


OLDEST_PYTHON = "3.11.2"
"""Debian 12's. Some packages want a later 3.11."""


@pytest.mark.parametrize("dependency", DIRECT)
def test_every_direct_dependency_has_a_tested_version_that_it_allows(dependency: str) -> None:
    requirement = Requirement(dependency)
    version = versions()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version, prereleases=True)


def test_tested_versions_install_on_the_oldest_python() -> None:
    """As far as they are the ones installed here."""
    refusing = {}
    for name, version in versions().items():
        with suppress(PackageNotFoundError):
            installed = distribution(name)
            wanted = SpecifierSet(str(installed.metadata.json.get("requires_python", "")))
            if installed.version == version and OLDEST_PYTHON not in wanted:
                refusing[name] = str(wanted)
    assert refusing == {}


def test_names_are_canonical_sorted_and_without_repetition() -> None:
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted({canonicalize_name(name) for name in names})
