"""The packages' READMEs and docstrings name only what exists, and READMEs stay short."""

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
_DEFINED = re.compile(r"^ *(?:class |def |async def )(\w+)|^([A-Z]\w+): TypeAlias", re.MULTILINE)
_QUALIFIED = re.compile(r"(?<!`)`((?:api|bench|common|edge|monitor|tests)\.[\w.]+)`")
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


@pytest.fixture(scope="module")
def sources() -> dict[Path, str]:
    return {path: path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py")}


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_classes_and_functions_named_in_a_readme_exist(readme: Path, sources: dict[Path, str]) -> None:
    named = {name.removesuffix("()") for name in _NAME.findall(readme.read_text())}
    if readme == ROOT / "edge/README.md":
        assert {"ClientConnection", "respond", "_may_retry"} <= named
    defined = {name for source in sources.values() for found in _DEFINED.findall(source) for name in found}
    assert named - defined == set()


def test_what_a_docstring_names_in_another_module_exists(sources: dict[Path, str]) -> None:
    named = {name for source in sources.values() for name in _QUALIFIED.findall(source)}
    assert "monitor.claims" in named
    assert {name for name in named if not exists(name, sources)} == set()


def exists(qualified: str, sources: dict[Path, str]) -> bool:
    """Whether a package, a module, or a name within one is called that."""
    parts = qualified.split(".")
    for count in range(len(parts), 0, -1):
        place, names = ROOT.joinpath(*parts[:count]), parts[count:]
        source = sources.get(place.with_suffix(".py")) or sources.get(place / "__init__.py")
        if source is not None:
            return all(re.search(rf"\b{name}\b", source) for name in names)
    return False


@pytest.mark.parametrize("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_readme_stays_short(readme: Path) -> None:
    assert len(readme.read_text().splitlines()) <= LONGEST_LINES
