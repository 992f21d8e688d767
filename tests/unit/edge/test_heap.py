"""Memory that stayed free for a while goes back to the system; memory in use, or used again and again, does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from edge.proxy.heap import HeapTrimmer, find_heap

MB = 1024 * 1024


class FakeHeap:
    def __init__(self) -> None:
        self.free = 2 * MB
        self.trims = 0
        self.parts = 0

    def free_bytes(self) -> int:
        return self.free

    def release_part(self) -> bool:
        """In three parts."""
        self.parts += 1
        self.trims += self.parts % 3 == 0
        return self.parts % 3 > 0


class Seconds:
    """A worker that ticks four times a second."""

    def __init__(self) -> None:
        self.heap = FakeHeap()
        self.now = 100.0
        self.trimmer = HeapTrimmer(self.heap, self.now)

    def pass_by(self, seconds: float, free: int) -> int:
        """The trims so far."""
        self.heap.free = free
        for _ in range(int(seconds * 4)):
            self.now += 0.25
            self.trimmer.look(self.now)
        return self.heap.trims


def test_what_stays_free_is_given_back_once() -> None:
    worker = Seconds()
    assert worker.pass_by(60, 2 * MB) == 0
    assert worker.pass_by(4, 110 * MB) == 0
    assert worker.pass_by(9, 110 * MB) == 1
    assert worker.pass_by(600, 110 * MB) == 1  # free, but without pages


def test_what_was_used_and_left_again_is_given_back_again() -> None:
    worker = Seconds()
    worker.pass_by(30, 110 * MB)
    worker.pass_by(5, 3 * MB)
    assert worker.pass_by(30, 110 * MB) == 2


def test_little_and_what_is_used_in_between_stays() -> None:
    worker = Seconds()
    assert worker.pass_by(60, 17 * MB) == 0
    for _ in range(20):
        worker.pass_by(4, 110 * MB)
        assert worker.pass_by(4, 3 * MB) == 0


def test_where_the_library_cannot_trim_nothing_happens() -> None:
    HeapTrimmer(None, 0.0).look(1000.0)


@pytest.mark.skipif(find_heap() is None, reason="not glibc")
def test_the_real_heap_shrinks() -> None:
    """In a process of its own: 64 MB between objects that stay."""
    script = """
from edge.proxy.heap import GlibcHeap, HeapTrimmer
def resident():
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))
heap = GlibcHeap()
trimmer = HeapTrimmer(heap, 0.0)
before = resident()
buffers, between = [], []
for _ in range(1000):
    buffers.append(b"x" * 64_000)
    between.append(b"x" * 2_000)
trimmer.look(3.0)
full = resident()
buffers.clear()
trimmer.look(6.0)  # the window in which it was used
trimmer.look(9.0)
for tick in range(24, 200):
    trimmer.look(tick / 2)
assert heap._pieces == []
print(before, full, resident())
"""
    before, full, after = map(int, subprocess.check_output([sys.executable, "-c", script], text=True).split())
    assert full - before > 40
    assert after - before < 20
