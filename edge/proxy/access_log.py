"""The access log: a line for each request, refused ones too; off unless a destination is set.

Lines are made in the loop (`edge.proxy.log_lines`) and written in a thread of its own, batched, so that no disk and no
reader of a pipe can stop the loop; what does not fit the bound between the two is dropped and counted. Workers share
the destination: each write is whole lines, appended.
"""

from __future__ import annotations

import os
import queue
import select
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final

from common.errors import OperatorError
from common.logs import get_logger
from common.metrics import Family
from edge.proxy.log_lines import FORMATS

if TYPE_CHECKING:  # the supervisor comes here too, only to look at the log's destination
    from edge.http.error_responses import ErrorResponse
    from edge.http.request import RequestHead
    from edge.proxy.exchange import Exchange
    from edge.proxy.log_lines import LoggedConnection

OFF: Final = "off"
STANDARD_OUTPUT: Final = "-"
# Between loop and thread: a disk that stands still for a second at 20,000 requests a second.
_MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
_BATCH_LINES: Final = 512  # some 150 KB
# A longer write to a pipe may be mixed with another worker's (POSIX, write): no line may come near it.
_MAX_PIPE_BYTES: Final = select.PIPE_BUF
_CLOSE_SECONDS: Final = 2.0

_log = get_logger("edge.proxy.access_log")


def check(destination: str) -> None:
    """Refuse a destination that cannot be opened.

    Raises: `OperatorError`.
    """
    if destination != OFF:
        os.close(_open_first(_path(destination)))


class AccessLog:
    """Writes a worker's lines. `flush` is called by the worker's clock, `close` by the worker."""

    def __init__(
        self,
        destination: str,
        *,
        node: str,
        sample: float,
        user_agent: bool,
        random: Callable[[], float],
        line_format: str = "json",
    ) -> None:
        """Open the destination. `node` names this machine in each line; `user_agent`: lines state the client's.

        Raises: `OperatorError` when the destination cannot be opened.
        """
        self._writer = _Writer(destination)
        self._add = self._writer.add
        self._line = FORMATS[line_format](node, user_agent=user_agent).line
        self._is_whole = sample >= 1
        self._sample = sample
        self._random = random

    def write(
        self,
        connection: LoggedConnection,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> None:
        """Write the line of a request down, if it is in the sample: errors of ours and of origins always are."""
        if self._is_whole or status >= 500 or self._random() < self._sample:
            self._add(self._line(connection, time(), status, request_id, head, bytes_down, exchange, refusal))

    def flush(self) -> None:
        """Have the lines so far written."""
        self._writer.flush()

    def close(self) -> None:
        """Write what is there, and close the destination."""
        self._writer.close()

    def families(self) -> list[Family]:
        """Return the metrics."""
        return [
            Family.of("frontage_edge_access_log_dropped", "Lines not written.", "counter", self._writer.dropped_count)
        ]


class _Writer:
    """Writes lines to a file. State is grouped by owner: the loop, the thread."""

    def __init__(self, destination: str) -> None:
        # the loop's
        self._lines: list[bytes] = []
        self._handed_bytes = 0
        self._dropped = 0
        # the thread's
        self._path = _path(destination)
        self._descriptor = _open_first(self._path)
        self._settled_bytes = 0
        self._lost = 0
        self._is_failing = False
        # between them
        self._batches: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="access log", daemon=True)
        self._thread.start()

    @property
    def dropped_count(self) -> int:
        return self._dropped + self._lost

    # In the loop -------------------------------------------------------------------------------------------

    def add(self, line: bytes) -> None:
        lines = self._lines
        lines.append(line)
        if len(lines) >= _BATCH_LINES:
            self.flush()

    def flush(self) -> None:
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        size = sum(map(len, lines))
        if self._handed_bytes - self._settled_bytes + size > _MAX_WAITING_BYTES:
            self._dropped += len(lines)
            return
        self._handed_bytes += size
        self._batches.put(lines)

    def close(self) -> None:
        """Write what is there, unless that takes too long."""
        self.flush()
        self._batches.put(None)
        self._thread.join(_CLOSE_SECONDS)

    # In the thread -----------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (lines := self._batches.get()) is not None:
            try:
                self._reopen_if_moved()
                self._write(lines)
            except OSError as error:
                self._lost += len(lines)  # at most: some may have been written
                if not self._is_failing:
                    _log.error("access log cannot be written", error=str(error))
                self._is_failing = True
            else:
                self._is_failing = False
            self._settled_bytes += sum(map(len, lines))
        os.close(self._descriptor)

    def _reopen_if_moved(self) -> None:
        """Log rotation moves the file away without notice."""
        if self._path is None:
            return
        try:
            is_same = os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            fresh = _open(self._path)
            os.close(self._descriptor)
            self._descriptor = fresh

    def _write(self, lines: list[bytes]) -> None:
        if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            self._write_all(b"".join(lines))
            return
        piece = b""
        for line in lines:
            if len(piece) + len(line) > _MAX_PIPE_BYTES:
                self._write_all(piece)
                piece = b""
            piece += line
        self._write_all(piece)

    def _write_all(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


def _path(destination: str) -> Path | None:
    return None if destination == STANDARD_OUTPUT else Path(destination)


def _open_first(path: Path | None) -> int:
    try:
        return _open(path)
    except OSError as error:
        raise OperatorError(f"FRONTAGE_EDGE_ACCESS_LOG: {path or 'standard output'}: {error.strerror}") from error


def _open(path: Path | None) -> int:
    if path is None:
        return os.dup(1)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
