"""Gives memory of the C heap back to the system once it has not been used for a while.

Buffers of slow readers lie between smaller objects that live longer, so that glibc keeps what they leave: 400 clients
that read nothing left 108 MB behind. `malloc_trim` gives back whole pages anywhere in the heap. It stops the worker for
a quarter of a millisecond a megabyte, and pages that are used again cost a fault each: so only what stayed free
for `_WINDOW_SECONDS` is given back, and only from `_LEAST_BYTES` on.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final, Protocol

_WINDOW_SECONDS: Final = 5.0
_SAMPLE_SECONDS: Final = 1.0
_LEAST_BYTES: Final = 16 * 1024 * 1024
_NO_SAMPLE: Final = sys.maxsize


class Heap(Protocol):
    def free_bytes(self) -> int:
        """Return the bytes that are free within the heap, whether the process holds their pages or not."""

    def trim(self) -> None:
        """Give the pages of free bytes back to the system."""


class HeapTrimmer:
    """One a worker, asked at each tick. Mutable state: what was free since the last trim, and in the current window.

    What was free at all times since the last trim has no pages; the lowest number of free bytes says how much that is.
    """

    __slots__ = ("_heap", "_lowest", "_lowest_in_window", "_next_sample_at", "_window_ends_at")

    def __init__(self, heap: Heap | None, now: float) -> None:
        self._heap = heap
        self._lowest = heap.free_bytes() if heap is not None else 0
        self._lowest_in_window = _NO_SAMPLE
        self._next_sample_at = now + _SAMPLE_SECONDS
        self._window_ends_at = now + _WINDOW_SECONDS

    def look(self, now: float) -> None:
        """Look at the heap once a second, and trim it where much has been free for a whole window."""
        heap = self._heap
        if heap is None or now < self._next_sample_at:
            return
        self._next_sample_at = now + _SAMPLE_SECONDS
        free = heap.free_bytes()
        self._lowest = min(self._lowest, free)
        self._lowest_in_window = min(self._lowest_in_window, free)
        if now < self._window_ends_at:
            return
        if self._lowest_in_window - self._lowest >= _LEAST_BYTES:
            heap.trim()
            self._lowest = heap.free_bytes()
        self._window_ends_at = now + _WINDOW_SECONDS
        self._lowest_in_window = _NO_SAMPLE


_MALLINFO_NAMES: Final = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class _Mallinfo(ctypes.Structure):
    """glibc's struct mallinfo2, mallinfo(3)."""

    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO_NAMES]
    fordblks: int


class GlibcHeap:
    """The heap of this process."""

    def __init__(self) -> None:
        """Raises: AttributeError where the C library has no such functions (glibc before 2.33, musl)."""
        library = ctypes.CDLL(None)
        self._trim = library.malloc_trim
        self._trim.argtypes = [ctypes.c_size_t]
        self._mallinfo = library.mallinfo2
        self._mallinfo.restype = _Mallinfo

    def free_bytes(self) -> int:
        info: _Mallinfo = self._mallinfo()
        return info.fordblks

    def trim(self) -> None:
        self._trim(0)


def find_heap() -> GlibcHeap | None:
    """Return the heap of this process, or None where it cannot be trimmed."""
    try:
        return GlibcHeap()
    except AttributeError:
        return None
