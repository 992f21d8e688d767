from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import output


def test_figures_are_written_with_the_machine_they_come_from(tmp_path: Path) -> None:
    path = output.write("some", {"figure": 1}, tmp_path / "output")
    assert path == tmp_path / "output" / "some.json"
    assert json.loads(path.read_text()).keys() == {"measured_at", "machine", "python", "figure"}


def test_where_the_package_cannot_be_written_it_is_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert output.directory(tmp_path / "absent" / "output") == tmp_path / "bench-output"
