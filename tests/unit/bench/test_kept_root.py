"""The CA root that all demos of a user share."""

from __future__ import annotations

from pathlib import Path

from bench.demo.kept_root import kept_directory, place_kept_root
from common.clock import SystemClock
from common.secrets import load_keyring
from monitor.certificates.internal import open_internal, root_path


def placed(environ: dict[str, str], state_dir: Path) -> bytes:
    """The root of a demo whose state directory is this one."""
    state_dir.mkdir()
    assert place_kept_root(environ, state_dir) == root_path(kept_directory(environ))
    open_internal(state_dir, load_keyring(state_dir / "master.key"), SystemClock())  # its key opens there
    return root_path(state_dir).read_bytes()


def test_two_demos_have_one_root_and_its_key_is_its_users_alone(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert placed(environ, tmp_path / "first") == placed(environ, tmp_path / "second")
    kept = kept_directory(environ)
    modes = [path.stat().st_mode & 0o077 for path in (kept, kept / "master.key", kept / "ca" / "root.key")]
    assert modes == [0, 0, 0]


def test_a_demo_goes_on_where_no_root_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert place_kept_root({"XDG_STATE_HOME": str(tmp_path / "file")}, tmp_path) is None
    assert not (tmp_path / "ca").exists()
