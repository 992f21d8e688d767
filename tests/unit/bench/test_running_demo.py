from __future__ import annotations

from pathlib import Path

import pytest

from bench.demo.running_demo import RunningDemo, find_running_demo

DEMO = RunningDemo(
    domain="shop.customer.localhost",
    edge_https="127.0.0.1:8443",
    ca_file="/state/ca/root.pem",
    api="http://127.0.0.1:8000",
    application_id="a1",
    client_secret="secret",
    origin="http://127.0.0.1:4000",
)


@pytest.fixture(autouse=True)
def runtime_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_a_demo_is_found_with_and_without_its_state_directory_and_gone_after(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    with DEMO.announced(state_dir):
        assert find_running_demo({"FRONTAGE_STATE_DIR": str(state_dir)}) == DEMO
        assert find_running_demo({}) == DEMO
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.rglob("*.json"))
    assert find_running_demo({}) is None
    assert list(tmp_path.rglob("*.json")) == []


def test_a_later_demo_keeps_its_announcement_when_the_first_ends(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    later = RunningDemo(**{name: getattr(DEMO, name) for name in DEMO.__slots__} | {"application_id": "b2"})
    with later.announced(second):
        with DEMO.announced(first):
            later._write(tmp_path / f"frontage-{tmp_path.stat().st_uid}-demo.json")
        assert find_running_demo({}) == later


def test_damage_and_links_are_no_demo(tmp_path: Path, runtime_dir: Path) -> None:
    (tmp_path / "demo.json").write_text("{")
    assert find_running_demo({"FRONTAGE_STATE_DIR": str(tmp_path)}) is None
    (tmp_path / "demo.json").unlink()
    (tmp_path / "demo.json").symlink_to(tmp_path / "elsewhere.json")
    assert find_running_demo({"FRONTAGE_STATE_DIR": str(tmp_path)}) is None
