"""The tested versions (`.ci/constraints.txt`) fit what the package asks for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
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


@pytest.mark.parametrize("dependency", DIRECT)
def test_every_direct_dependency_has_a_tested_version_that_it_allows(dependency: str) -> None:
    requirement = Requirement(dependency)
    version = versions()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version, prereleases=True)


def test_names_are_canonical_sorted_and_without_repetition() -> None:
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted({canonicalize_name(name) for name in names})
