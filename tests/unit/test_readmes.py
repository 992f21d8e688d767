"""The packages' READMEs name only files that exist, and stay short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.children import ROOT

PACKAGES = ("api", "bench", "common", "edge", "monitor", "tests")
LONGEST_LINES = 120
READMES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("README.md"))
_PATH = re.compile(r"`((?:api|bench|common|edge|monitor|tests)/[\w./-]*)`")
_MODULE = re.compile(r"`python -m ((?:bench|tests)[\w.]*)")
_NAME = re.compile(r"`([A-Z][a-z]+[A-Z]\w*|_?[a-z_]+\(\)|_[a-z_]+)`")  # a class, or a function
_LINK = re.compile(r"\]\(([^)#:]+)\)")


def named_files(readme: Path) -> list[Path]:
    text = readme.read_text()
    modules = [ROOT / module.replace(".", "/") for module in _MODULE.findall(text)]
    return [
        *(ROOT / path for path in _PATH.findall(text)),
        *(module if module.is_dir() else module.with_suffix(".py") for module in modules),
        *(readme.parent / link for link in _LINK.findall(text)),
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_a_readme(package: str) -> None:
    assert (ROOT / package / "README.md").is_file()


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_readme_names_exists(readme: Path) -> None:
    named = named_files(readme)
    assert named
    assert [str(path.relative_to(ROOT)) for path in named if not path.exists()] == []


def test_classes_and_functions_named_in_the_edge_readme_exist() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "edge").rglob("*.py"))
    named = set(_NAME.findall((ROOT / "edge/README.md").read_text()))
    assert {"ClientConnection", "respond()", "_may_retry"} <= named
    assert {name for name in named if not re.search(rf"\b(?:class|def) {name.removesuffix('()')}\b", code)} == set()


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_readme_stays_short(readme: Path) -> None:
    assert len(readme.read_text().splitlines()) <= LONGEST_LINES
