"""The tested versions (`.ci/constraints.txt`) fit what the package asks for."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.children import ROOT

FILE = Path(ROOT) / ".ci/constraints.txt"
PROJECT = tomllib.loads((Path(ROOT) / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
ASKED = {*PROJECT["dependencies"], *EXTRAS["embedded"], *EXTRAS["test"]}
DIRECT = sorted(each for each in ASKED if not each.startswith(f"{PROJECT['name']}["))  # an extra of our own


def versions() -> dict[str, str]:
    lines = FILE.read_text("utf-8").splitlines()
    pairs = [(line.partition("==")[0], line.partition("==")[2]) for line in lines if line and not line.startswith("#")]
    return dict(pairs)


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
            wanted = SpecifierSet(installed.metadata["Requires-Python"] or "")
            if installed.version == version and OLDEST_PYTHON not in wanted:
                refusing[name] = str(wanted)
    assert refusing == {}


def test_names_are_canonical_sorted_and_without_repetition() -> None:
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted({canonicalize_name(name) for name in names})
