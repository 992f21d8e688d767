import os
import stat
from pathlib import Path

import pytest

from common import atomic_files
from common.secrets import load_keyring


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_replaced_file_has_the_content_and_the_mode_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o644)
    atomic_files.replace_file(path, b"new")
    assert (path.read_bytes(), mode(path), os.listdir(tmp_path)) == (b"new", 0o600, ["secret"])


def test_a_failed_write_keeps_the_file_and_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "secret"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        atomic_files.replace_file(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["secret"])


def test_what_another_program_wrote_is_synced_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dump"
    synced: list[tuple[str, list[str]]] = []
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else os.pread(descriptor, 9, 0).decode()
        synced.append((kind, [name for name in os.listdir(tmp_path) if name == "dump"]))
        sync(descriptor)

    with atomic_files.file_replaced(path) as draft:
        monkeypatch.setattr(os, "fsync", recorded)
        draft.write_bytes(b"pg_dump's")
    assert synced == [("pg_dump's", []), ("directory", ["dump"])]
    assert (path.read_bytes(), mode(path), os.listdir(tmp_path)) == (b"pg_dump's", 0o600, ["dump"])


def test_what_another_program_failed_to_write_is_removed(tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_files.file_replaced(tmp_path / "dump") as draft:
            draft.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.listdir(tmp_path) == []


def test_the_first_of_two_creates_the_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    assert atomic_files.create_file(path, b"first")
    assert not atomic_files.create_file(path, b"second")
    assert (path.read_bytes(), mode(path), os.listdir(tmp_path)) == (b"first", 0o600, ["key"])


def test_a_new_file_is_not_written_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        atomic_files.write_new_file(tmp_path / "link", b"secret")
    assert not (tmp_path / "elsewhere").exists()


def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        atomic_files.write_new_file(tmp_path / "root.pem", b"public", mode=0o644)
    finally:
        os.umask(before)
    assert mode(tmp_path / "root.pem") == 0o644


def test_a_draft_left_by_a_crash_of_a_process_with_the_same_pid_does_not_stop_the_next_write(tmp_path: Path) -> None:
    (tmp_path / f".master.key.{os.getpid()}").write_bytes(b"half a k")
    assert load_keyring(tmp_path / "master.key", create=True).current
