"""Give memory of the C heap back to the system once it has not been used for a while.

Buffers of slow readers lie between smaller objects that live longer, so that glibc keeps what they leave: 400 clients
that read nothing left 108 MB behind. `malloc_trim` gives all of it back in one call, which stops the worker for a
quarter of a millisecond a megabyte and more. So it is done in parts, one a tick: free memory is allocated in pieces,
the pages of each piece are given back, and all pieces are freed again at the end, since else the next part would get
the same ones. Pages that are used again cost a fault each: only what stayed free for `_WINDOW_SECONDS` is given back,
and only from `_LEAST_BYTES` on.

glibc itself gives the end of the heap back when more than 128 KB are free there, and the buffers of a body often are
there: the heap shrank and grew again for each write, with a page fault for each page. So glibc keeps up to 8 MB there.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Final, Protocol

_WINDOW_SECONDS: Final = 5.0
_SAMPLE_SECONDS: Final = 1.0
_LEAST_BYTES: Final = 16 * 1024 * 1024
_NO_SAMPLE: Final = sys.maxsize
_PIECE_BYTES: Final = 60_000  # below what glibc maps by itself
_PIECES_AT_ONCE: Final = 64
_FREED_AT_ONCE: Final = 512
_M_TRIM_THRESHOLD: Final = -1  # mallopt(3)
_M_MMAP_THRESHOLD: Final = -3
_KEPT_AT_END_BYTES: Final = 8 * 1024 * 1024
_MAPPED_FROM_BYTES: Final = 1024 * 1024  # else 128 KB: glibc adjusts neither once one is set


class Heap(Protocol):
    """The memory of a process."""

    def free_bytes(self) -> int:
        """Return the bytes that are free within the heap, whether the process holds their pages or not."""

    def release_part(self) -> bool:
        """Give the pages of some free bytes back to the system; False once there are no more."""


class HeapTrimmer:
    """Trims the heap of a worker, which calls it at each tick.

    Mutable state: what was free since the last trim, and in the current window. What was free at all times since the
    last trim has no pages; the lowest number of free bytes says how much that is.
    """

    __slots__ = ("_heap", "_is_trimming", "_lowest", "_lowest_in_window", "_next_sample_at", "_window_ends_at")

    def __init__(self, heap: Heap | None, now: float) -> None:
        self._heap = heap
        self._is_trimming = False
        self._lowest = heap.free_bytes() if heap is not None else 0
        self._lowest_in_window = _NO_SAMPLE
        self._next_sample_at = now + _SAMPLE_SECONDS
        self._window_ends_at = now + _WINDOW_SECONDS

    def look(self, now: float) -> None:
        """Look at the heap once a second, and trim it in parts where much has been free for a whole window."""
        heap = self._heap
        if heap is None:
            return
        if self._is_trimming:
            self._trim(heap, now)
        elif now >= self._next_sample_at:
            self._sample(heap, now)

    def _trim(self, heap: Heap, now: float) -> None:
        self._is_trimming = heap.release_part()
        if not self._is_trimming:
            self._lowest = heap.free_bytes()
            self._begin_window(now)

    def _sample(self, heap: Heap, now: float) -> None:
        self._next_sample_at = now + _SAMPLE_SECONDS
        free = heap.free_bytes()
        self._lowest = min(self._lowest, free)
        self._lowest_in_window = min(self._lowest_in_window, free)
        if now < self._window_ends_at:
            return
        self._is_trimming = self._lowest_in_window - self._lowest >= _LEAST_BYTES
        self._begin_window(now)

    def _begin_window(self, now: float) -> None:
        self._window_ends_at = now + _WINDOW_SECONDS
        self._lowest_in_window = _NO_SAMPLE


_MALLINFO_NAMES: Final = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class _Mallinfo(ctypes.Structure):
    """glibc's struct mallinfo2, mallinfo(3)."""

    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO_NAMES]
    arena: int
    fordblks: int


class GlibcHeap:
    """The heap of this process. Mutable state: the pieces that a trim has allocated."""

    def __init__(self) -> None:
        """Find the functions of the C library, and have it keep some free bytes at the end of the heap.

        Raises: AttributeError where it has none (glibc before 2.33, musl).
        """
        library = ctypes.CDLL(None)
        self._mallinfo = library.mallinfo2
        self._mallinfo.restype = _Mallinfo
        self._malloc = library.malloc
        self._malloc.argtypes, self._malloc.restype = [ctypes.c_size_t], ctypes.c_size_t
        self._free = library.free
        self._free.argtypes, self._free.restype = [ctypes.c_size_t], None
        self._madvise = library.madvise
        self._madvise.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_AT_END_BYTES)
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)
        self._pieces: list[int] = []
        self._is_freeing = False
        self._size_bytes = 0  # of the heap, when the trim began

    def free_bytes(self) -> int:
        """Return how many bytes are free within the heap."""
        info: _Mallinfo = self._mallinfo()
        return info.fordblks

    def release_part(self) -> bool:
        """Give a part of the free pages back to the system. Return whether more is to be done."""
        if self._is_freeing:
            self._free_pieces(_FREED_AT_ONCE)
        else:
            self._is_freeing = self._release_pieces()
        if self._is_freeing and not self._pieces:
            self._is_freeing = False
            return False
        return True

    def _release_pieces(self) -> bool:
        """Give pages back; True where the heap had to grow for the last pieces: nothing large enough is free."""
        if not self._pieces:
            self._size_bytes = self._mallinfo().arena
        for _ in range(_PIECES_AT_ONCE):
            start = self._malloc(_PIECE_BYTES)
            self._pieces.append(start)
            first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
            last = (start + _PIECE_BYTES) // mmap.PAGESIZE * mmap.PAGESIZE
            self._madvise(first, last - first, mmap.MADV_DONTNEED)
        has_grown: bool = self._mallinfo().arena > self._size_bytes
        return has_grown

    def _free_pieces(self, count: int) -> None:
        for _ in range(min(count, len(self._pieces))):
            self._free(self._pieces.pop())


def find_heap() -> GlibcHeap | None:
    """Return the heap of this process, or None where it cannot be trimmed."""
    try:
        return GlibcHeap()
    except AttributeError:
        return None
