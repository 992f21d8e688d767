"""Measures how much memory a process holds for itself alone. Linux, from /proc/<pid>/smaps.

Pages of the replica's file are the kernel's file cache: it takes them back when it needs them, and the same ones serve
all processes. They are counted apart, also where this process happens to be the only one that has looked at them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPLICA_FILE = "data.mdb"
_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(?P<file>.*)")


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a process in bytes. `private_bytes` and `pss_bytes` are without the replica's pages."""

    private_bytes: int
    pss_bytes: int
    replica_bytes: int


def memory_of(pid: int) -> Memory:
    """Measure the memory of a process.

    Raises: OSError when there is no such process, or it belongs to another user.
    """
    return parse_smaps(Path(f"/proc/{pid}/smaps").read_text("utf-8", "replace"))


def parse_smaps(text: str) -> Memory:
    """Add up the mappings in the text of a file ``smaps``."""
    private = pss = replica = 0
    is_replica = False
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not colon or " " in name:
            if found := _MAPPING.fullmatch(line):
                is_replica = found["file"].endswith(REPLICA_FILE)
            continue
        if name == "Rss" and is_replica:
            replica += _bytes(value)
        elif name in ("Private_Clean", "Private_Dirty") and not is_replica:
            private += _bytes(value)
        elif name == "Pss" and not is_replica:
            pss += _bytes(value)
    return Memory(private, pss, replica)


def _bytes(value: str) -> int:
    return int(value.split(maxsplit=1)[0]) * 1024
