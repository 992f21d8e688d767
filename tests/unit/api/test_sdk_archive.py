"""Released versions of the SDK answer at their own address for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api.sdk.archive import HASHES, keep
from api.sdk.assets import ARCHIVE, ENTRY, HERE, VERSION, integrity, join, load_assets


def test_an_older_version_is_served_beside_the_newest(tmp_path: Path) -> None:
    keep("0.9.0", "old();", tmp_path)
    assets = load_assets(tmp_path)
    assert (assets["0.9.0/frontage.js"].content, assets["0.9.0/frontage.js"].is_pinned) == (b"old();", True)
    assert assets[f"{VERSION}/frontage.js"].content == assets["v1/frontage.js"].content


def test_a_released_version_is_kept_once_and_not_changed(tmp_path: Path) -> None:
    path = keep("0.9.0", "old();", tmp_path)
    assert keep("0.9.0", "old();", tmp_path) == path
    with pytest.raises(ValueError, match="raise the version"):
        keep("0.9.0", "new();", tmp_path)
    assert path.read_text() == "old();"


def test_the_current_script_is_the_kept_one_of_its_version() -> None:
    """A script that changes needs a version of its own: raise it in package.json, then `python -m api.sdk.archive`."""
    kept = ARCHIVE / f"{VERSION}.js"
    assert kept.exists()
    assert kept.read_text("utf-8") == join(HERE / ENTRY)


def test_every_kept_version_has_the_bytes_of_its_hash() -> None:
    hashes = json.loads((ARCHIVE / HASHES).read_text("utf-8"))
    assert {path.stem: integrity(path.read_bytes()) for path in ARCHIVE.glob("*.js")} == hashes
