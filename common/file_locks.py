"""File locks that are released when their holders end, even by SIGKILL, and the identity of a holder.

A lock is an flock: it lasts as long as any process keeps the descriptor open, so a child that inherits the descriptor
holds it too. The file names the process that acquired it, by pid and start time, because pids are reused.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from common.errors import OperatorError


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identifies a process, and no later one with the same pid."""

    pid: int
    started: int  # clock ticks after boot, /proc/<pid>/stat field 22

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Return the identity of the process `pid`, or None when there is none; a zombie does not count."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        state, *fields = stat[stat.rindex(")") + 2 :].split()  # the name before may hold blanks and brackets
        return None if state in "ZX" else cls(pid, int(fields[18]))

    def is_alive(self) -> bool:
        """Return whether this very process still runs."""
        return ProcessIdentity.of(self.pid) == self


class FileLock:
    """An exclusive lock, held until `release` or the end of the last process sharing it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def try_acquire(cls, path: Path) -> FileLock | None:
        """Acquire the lock at `path`, or return None when another process holds it.

        Raises: OperatorError when the file cannot be opened.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OperatorError(f"cannot open {path}: {error.strerror}") from error
        if not _try_flock(descriptor, fcntl.LOCK_EX):
            os.close(descriptor)
            return None
        me = ProcessIdentity.of(os.getpid())
        assert me is not None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{me.pid} {me.started}\n".encode(), 0)
        return cls(descriptor)

    def fileno(self) -> int:
        """Return the descriptor that holds the lock."""
        assert self._descriptor is not None, "released"
        return self._descriptor

    def release(self) -> None:
        """Close this process' descriptor; a child that inherited it still holds the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def locked_text(path: Path) -> Iterator[TextIO]:
    """Open a text file to read and append, wait for its lock and hold it for the block. Raises: `OSError`."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file


def last_holder(path: Path) -> ProcessIdentity | None:
    """Return the process that acquired the lock last; it may have ended."""
    try:
        pid, started = path.read_text("ascii").split()
        return ProcessIdentity(int(pid), int(started))
    except (OSError, ValueError):
        return None


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock at `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_flock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def kill_holders(path: Path, programs: frozenset[str]) -> None:
    """Send SIGKILL to every process that has this very file open and runs one of `programs`."""
    lock = path.stat()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            process = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        try:
            # Inspected by pid, signalled through the pidfd: never a later process with the same pid.
            if _program(entry) in programs and _has_open(entry, lock):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        finally:
            os.close(process)


def _program(process: Path) -> str:
    try:
        return os.readlink(process / "exe").removesuffix(" (deleted)").rpartition("/")[2]
    except OSError:
        return ""


def _has_open(process: Path, file: os.stat_result) -> bool:
    try:
        return any(_is_same_file(link, file) for link in (process / "fd").iterdir())
    except OSError:
        return False


def _is_same_file(link: Path, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(link.stat(), file)
    except OSError:
        return False


def _try_flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
