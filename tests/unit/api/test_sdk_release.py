"""Released versions of the SDK answer at their own address for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from api.sdk.assets import VERSION, integrity, load_assets
from api.sdk.release import write_release


def test_a_released_version_is_served_beside_the_newest(tmp_path: Path) -> None:
    write_release("0.9.0", "old();", tmp_path)
    assets = load_assets(tmp_path)
    assert (assets["0.9.0/frontage.js"].content, assets["0.9.0/frontage.js"].is_pinned) == (b"old();", True)
    assert assets[f"{VERSION}/frontage.js"].content == assets["v1/frontage.js"].content


def test_only_files_named_after_a_version_are_served(tmp_path: Path) -> None:
    for name in ("notes.js", "v1.js", "1.0.js", "0.9.0.txt"):
        (tmp_path / name).write_text("x")
    assert load_assets(tmp_path) == load_assets()


def test_a_release_file_of_the_running_version_does_not_replace_it(tmp_path: Path) -> None:
    write_release(VERSION, "other();", tmp_path)
    assert load_assets(tmp_path)[f"{VERSION}/frontage.js"] == load_assets()[f"{VERSION}/frontage.js"]


def test_without_a_directory_the_own_version_is_served(tmp_path: Path) -> None:
    assert load_assets(tmp_path / "none") == load_assets()


def test_a_released_version_is_written_once_and_not_changed(tmp_path: Path) -> None:
    path = write_release("0.9.0", "old();", tmp_path)
    assert write_release("0.9.0", "old();", tmp_path) == path
    with pytest.raises(ValueError, match="raise the version"):
        write_release("0.9.0", "new();", tmp_path)
    assert path.read_text() == "old();"


def test_the_command_writes_the_script_that_is_served_and_prints_its_hash(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "api.sdk.release", str(tmp_path / "sdk")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    script = (tmp_path / "sdk" / f"{VERSION}.js").read_bytes()
    assert script == load_assets()[f"{VERSION}/frontage.js"].content
    assert printed == [str(tmp_path / "sdk" / f"{VERSION}.js"), integrity(script)]
