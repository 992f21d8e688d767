from __future__ import annotations

import os

from bench.memory import Memory, memory_of, parse_smaps

SMAPS = """\
55f0a0000000-55f0a0010000 rw-p 00000000 00:00 0                          [heap]
Size:                 64 kB
Rss:                  64 kB
Pss:                  40 kB
Shared_Clean:          0 kB
Private_Clean:         4 kB
Private_Dirty:        60 kB
VmFlags: rd wr mr mw me ac
7f0000000000-7f1000000000 r--s 00000000 fe:00 1234                       /var/lib/frontage/edge/replica/data.mdb
Rss:                 800 kB
Pss:                 800 kB
Private_Clean:       800 kB
Private_Dirty:         0 kB
7f2000000000-7f2000001000 r-xp 00000000 fe:00 99                         /usr/lib/a library.so
Rss:                   8 kB
Pss:                   4 kB
Private_Clean:         0 kB
Private_Dirty:         0 kB
"""


def test_the_replica_s_pages_are_counted_apart() -> None:
    assert parse_smaps(SMAPS) == Memory(private_bytes=64 * 1024, pss_bytes=44 * 1024, replica_bytes=800 * 1024)


def test_a_process_holds_what_it_has_written() -> None:
    before = memory_of(os.getpid()).private_bytes
    held = bytearray(os.urandom(1)) * (32 << 20)
    assert memory_of(os.getpid()).private_bytes - before > 0.9 * len(held)
