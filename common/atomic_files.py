"""Writes small files that are complete or absent, and durable, after a crash at any step.

A file is written under another name in the same directory, synced, renamed or linked to its own name, and the directory
is synced. A draft is always a new file (O_EXCL, never through a symbolic link), with its mode from the start, so that a
secret is readable by its owner only. A draft that a crash leaves has a name that no other draft gets.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OWNER_ONLY = 0o600


def replace_file(path: Path, content: bytes, *, mode: int = _OWNER_ONLY, owner: tuple[int, int] | None = None) -> None:
    """Write `path`, in place of the file that is there, if any. `owner`: user and group id, if not the process' own.

    Raises: `OSError`; the file that is there then stays, unless only the directory could not be synced.
    """
    with _draft(path, content, mode) as draft:
        if owner is not None:
            os.chown(draft, *owner)
        draft.rename(path)
    sync_directory(path.parent)


def create_file(path: Path, content: bytes, *, mode: int = _OWNER_ONLY) -> bool:
    """Write `path` unless it exists; of several processes one writes. Returns whether this one did.

    Raises: `OSError`.
    """
    with _draft(path, content, mode) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
    sync_directory(path.parent)
    return True


@contextmanager
def file_replaced(path: Path) -> Iterator[Path]:
    """Yield an empty file beside `path` for another program to write, and rename it to `path` after the block.

    It replaces the file that is there, if any. If the block raises, the empty file is removed.

    Raises: `OSError`, as `replace_file`.
    """
    with _draft(path, b"", _OWNER_ONLY) as draft:
        yield draft
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.rename(path)
    sync_directory(path.parent)


def write_new_file(path: Path, content: bytes, *, mode: int = _OWNER_ONLY) -> None:
    """Write and sync a file under its own name, for a directory that is itself a draft or that no reader waits for.

    Raises: `FileExistsError`, also for a symbolic link; `OSError`.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)  # whatever the umask
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises: `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _draft(path: Path, content: bytes, mode: int) -> Iterator[Path]:
    """Yield a complete file beside `path`; what is left under its name is removed."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        write_new_file(draft, content, mode=mode)
        yield draft
    finally:
        draft.unlink(missing_ok=True)
