"""Every module of the product stands in a contract of layers, so that none imports upwards unseen."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def read_layers() -> set[str]:
    """Return the modules and packages that the contracts of layers name, but for the roles themselves."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer for each in contracts if each["type"] == "layers" for layer in each["layers"]]
    return {name.strip() for layer in layers for name in layer.replace(":", "|").split("|") if "." in name}


def is_covered(module: str, layers: set[str]) -> bool:
    return any(module == layer or module.startswith(f"{layer}.") for layer in layers)


@pytest.mark.parametrize("role", ["api", "common", "edge", "monitor"])
def test_every_module_stands_in_a_contract_of_layers(role: str) -> None:
    layers = read_layers()
    paths = [path.relative_to(ROOT) for path in (ROOT / role).rglob("*.py") if path.name != "__init__.py"]
    modules = {".".join(path.with_suffix("").parts) for path in paths}
    assert sorted(module for module in modules if not is_covered(module, layers)) == []


def test_every_layer_is_there() -> None:
    names = [Path(*layer.split(".")) for layer in read_layers()]
    assert [str(name) for name in names if not ((ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file())] == []
