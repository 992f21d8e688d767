"""Measures the CPU time of a process and all its descendants, and sets the core they may use. Linux, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> Iterator[int]:
    """Yield `pid` and every process below it that lives."""
    yield pid
    for children in _children_files(pid):
        try:
            below = children.read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in below:
            yield from descendants(int(child))


def cpu_seconds(pid: int) -> float:
    """Return user and system time of the tree, ended and awaited children included."""
    return sum(map(_cpu_ticks, descendants(pid))) / _TICKS_PER_SECOND


def pin(pid: int, core: int) -> None:
    """Pin every thread of the tree to `core`, and so those it starts."""
    for process in descendants(pid):
        for thread in _threads(process):
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.sched_setaffinity(int(thread), {core})


def pin_all(core: int = 0) -> None:
    """Pin this process and all that it has started, servers included, to `core`.

    An answer from another core waits for that core to wake, which takes longer than a small question, and which core it
    comes from is chance.
    """
    pin(os.getpid(), core)


def set_priority(pid: int, priority: int) -> None:
    """Give every thread of the tree this priority of real time, or the usual one for 0; for pid 0 the calling thread.

    So other work on the machine delays it less. Nothing changes where that is not permitted.
    """
    policy = os.SCHED_RR if priority else os.SCHED_OTHER
    threads = [int(thread) for process in descendants(pid) for thread in _threads(process)] if pid else [0]
    for thread in threads:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))


def find_child(pid: int, *argv_tail: str) -> int:
    """Return the youngest descendant whose command line ends in `argv_tail`.

    Raises: LookupError.
    """
    for process in sorted(descendants(pid), reverse=True):
        try:
            argv = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if argv[-len(argv_tail) :] == [part.encode() for part in argv_tail]:
            return process
    raise LookupError(f"no process {' '.join(argv_tail)} below {pid}")


def _children_files(pid: int) -> list[Path]:
    """Return the files that list the children, one for each thread."""
    return [Path(f"/proc/{pid}/task/{thread}/children") for thread in _threads(pid)]


def _threads(pid: int) -> list[str]:
    """Return the threads of a process, none if it has ended; `Path.glob` raises when it ends meanwhile."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []


def _cpu_ticks(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    user, system, children_user, children_system = text.rpartition(")")[2].split()[11:15]
    return int(user) + int(system) + int(children_user) + int(children_system)
