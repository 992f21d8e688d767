"""Keeps uploads that are taken in whole before their origin is asked, and bounds how much is kept.

An upload waits in memory up to 64 KB, then in a file without a name: the file ends with its descriptor, however the
worker ends. One thread performs all operations on files, in the order in which they are asked for: a slow disk delays
uploads and nothing else, and a descriptor is never closed while it is written to.

The budget is a number of bytes for a worker, of which one application has at most a quarter. An application that has
used up its share, or a disk that is full, stops no upload: what cannot be kept is passed on as it comes.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final, ParamSpec, TypeVar

from common.logs import get_logger
from common.metrics import Family

MAX_MEMORY_BYTES: Final = 65_536
_SHARES: Final = 4
_READ_BYTES: Final = 262_144
_LOG_SECONDS: Final = 60.0

_log = get_logger("edge.proxy.upload_store")

P = ParamSpec("P")
T = TypeVar("T")


class UploadBudget:
    """Counts the bytes that a worker keeps of unfinished uploads, and each application's part of them."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self._by_application: dict[str, int] = {}
        self.used_bytes = 0

    def take(self, application_id: str, size: int) -> bool:
        """Count `size` more bytes if there is room for them. Return whether there is."""
        used = self._by_application.get(application_id, 0) + size
        if used > self._total_bytes // _SHARES or self.used_bytes + size > self._total_bytes:
            return False
        self._by_application[application_id] = used
        self.used_bytes += size
        return True

    def give_back(self, application_id: str, size: int) -> None:
        """Count `size` bytes less."""
        self.used_bytes -= size
        left = self._by_application.get(application_id, 0) - size
        if left > 0:
            self._by_application[application_id] = left
        else:
            self._by_application.pop(application_id, None)


class UploadStore:
    """Keeps a worker's uploads. Created with its `WorkerContext` and closed by it, after all connections."""

    def __init__(self, directory: Path, total_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        """Begin without files, which are made in `directory`."""
        self.directory = directory
        self.budget = UploadBudget(total_bytes)
        self.loop = loop
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="uploads")
        self._streamed = 0
        self._logged_at = -_LOG_SECONDS

    async def run(self, operation: Callable[P, T], *arguments: P.args, **_: P.kwargs) -> T:
        """Run `operation` in the files' thread, after those asked for before."""
        return await self.loop.run_in_executor(self._thread, operation, *arguments)

    def begin(self, operation: Callable[[], None]) -> None:
        """Have `operation` run, as by `run`, without waiting for it."""
        self._thread.submit(operation)

    def count_streamed(self) -> None:
        """Count an upload that is passed on as it comes.

        Its application's or the worker's room is used up, or the disk failed.
        """
        self._streamed += 1

    def log_failure(self, error: OSError) -> None:
        """Log the error, at most once a minute: a full disk meets every upload."""
        if self.loop.time() - self._logged_at >= _LOG_SECONDS:
            self._logged_at = self.loop.time()
            _log.warning("uploads cannot be buffered", directory=str(self.directory), error=str(error))

    def families(self) -> list[Family]:
        """Return the metrics."""
        return [
            Family.of(
                "frontage_edge_buffered_upload_bytes",
                "Kept of uploads until they are whole and sent.",
                "gauge",
                self.budget.used_bytes,
            ),
            Family.of(
                "frontage_edge_uploads_not_buffered",
                "Uploads streamed although they were to be buffered: no room, or no disk.",
                "counter",
                self._streamed,
            ),
        ]

    def close(self) -> None:
        """Close the thread once its operations are done."""
        self._thread.shutdown(wait=False)


class UploadBuffer:
    """Keeps one upload: written at its end, read from any place. Created by its exchange, which closes it."""

    __slots__ = ("_application_id", "_file", "_file_bytes", "_memory", "_store", "_taken_bytes")

    def __init__(self, store: UploadStore, application_id: str) -> None:
        self._store = store
        self._application_id = application_id
        self._memory = bytearray()  # behind what is in the file
        self._file: _UnnamedFile | None = None
        self._file_bytes = 0
        self._taken_bytes = 0

    @property
    def size(self) -> int:
        """Return how many bytes are kept."""
        return self._file_bytes + len(self._memory)

    @property
    def memory_bytes(self) -> int:
        """Return how many of them are in memory."""
        return len(self._memory)

    @property
    def is_in_memory(self) -> bool:
        """Return whether `content` is all of the upload."""
        return not self._file_bytes

    @property
    def content(self) -> bytes:
        """Return what is in memory."""
        return bytes(self._memory)

    def add(self, data: bytes) -> bool:
        """Keep `data`, in memory at first. False: there was no room for it, and there will be none for more."""
        self._memory += data
        has_room = self._store.budget.take(self._application_id, len(data))
        if has_room:
            self._taken_bytes += len(data)
        return has_room

    async def move_to_file(self) -> None:
        """Move what is in memory now into the file. One call at a time.

        Raises: OSError; then all of it is still in memory.
        """
        if self._file is None:
            self._file = _UnnamedFile(self._store.directory)
        data = bytes(self._memory)
        await self._store.run(self._file.write, data, self._file_bytes)
        self._file_bytes += len(data)
        del self._memory[: len(data)]

    async def read(self, position: int) -> bytes:
        """Return some bytes from `position`, which is below `size`.

        Raises: OSError.
        """
        if position < self._file_bytes and self._file is not None:
            size = min(_READ_BYTES, self._file_bytes - position)
            return await self._store.run(self._file.read, size, position)
        return bytes(memoryview(self._memory)[position - self._file_bytes :])

    def close(self) -> None:
        """Forget the upload."""
        self._store.budget.give_back(self._application_id, self._taken_bytes)
        self._taken_bytes = 0
        self._memory.clear()
        if self._file is not None:
            self._store.begin(self._file.close)


class _UnnamedFile:
    """A file used in the files' thread only. Opened by the first `write`."""

    __slots__ = ("_directory", "_file")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: BinaryIO | None = None

    def write(self, data: bytes, position: int) -> None:
        """Write all of the data.

        Raises: OSError.
        """
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0, prefix="upload-", dir=self._directory)  # noqa: SIM115
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file.fileno(), view, position)
            position += written
            view = view[written:]

    def read(self, size: int, position: int) -> bytes:
        """Return at most `size` bytes, not none.

        Raises: OSError.
        """
        assert self._file is not None, "read before it was written"
        data = os.pread(self._file.fileno(), size, position)
        if not data:
            raise OSError("an upload's file is shorter than what was written to it")
        return data

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
