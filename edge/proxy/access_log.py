"""The access log: one JSON object a line for each request, refused ones too; off unless a destination is set.

A line never carries a query, a field or a body: they hold secrets. Lines are made in the loop and written in a thread
of its own, batched, so that no disk and no reader of a pipe can stop the loop; what does not fit the bound between
the two is dropped and counted. Workers share the destination: each write is whole lines, appended.
"""

from __future__ import annotations

import os
import queue
import re
import select
import stat
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from common.errors import OperatorError
from common.logs import get_logger
from common.metrics import Family
from edge.http.error_responses import CLIENT_DISCONNECTED, CUT_OFF, ErrorResponse

if TYPE_CHECKING:  # the supervisor comes here too, only to look at the destination
    from edge.http.forwarded import Client
    from edge.http.request import RequestHead
    from edge.proxy.exchange import Exchange

OFF: Final = "off"
STANDARD_OUTPUT: Final = "-"
# Between loop and thread: a disk that stands still for a second at 20,000 requests a second.
_MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
_BATCH_BYTES: Final = 256 * 1024
# A longer write to a pipe may be mixed with another worker's (POSIX, write): no line may come near it.
_MAX_PIPE_BYTES: Final = select.PIPE_BUF
_MAX_PATH: Final = 1024
_MAX_TEXT: Final = 256
_USER_AGENT: Final = re.compile(rb"\r\nuser-agent:[ \t]*([^\r\n]*)", re.IGNORECASE)
_LAST_WORD_SECONDS: Final = 2.0

_log = get_logger("edge.proxy.access_log")


def check(destination: str) -> None:
    """Raises: `OperatorError` when it cannot be opened."""
    if destination != OFF:
        os.close(_open_first(_path(destination)))


class AccessLog:
    """One a worker, where there is one. `flush` is called by the worker's clock, `close` by the worker."""

    def __init__(
        self, destination: str, *, node: str, sample: float, user_agent: bool, random: Callable[[], float]
    ) -> None:
        """`node` names this machine in each line; `user_agent`: whether lines state the client's.

        Raises: `OperatorError` when the destination cannot be opened.
        """
        self._writer = _Writer(destination)
        self._node = node
        self._states_user_agent = user_agent
        self._sample = sample
        self._random = random

    def takes(self, status: int) -> bool:
        """Whether this one is written down: errors of ours and of origins always are."""
        return status >= 500 or self._sample >= 1 or self._random() < self._sample

    def add(
        self,
        status: int,
        *,
        request_id: str,
        client: Client,
        scheme: bytes,
        tls: str,
        head: RequestHead | None,
        bytes_down: int,
        now: float,
        exchange: Exchange | None = None,
        refusal: ErrorResponse | None = None,
    ) -> None:
        """`now` is monotonic; `head` is None where the request could not be read."""
        entry: dict[str, Any] = {
            "time": timestamp(time.time()),
            "id": request_id,
            "node": self._node,
            "status": status,
            "scheme": scheme.decode(),
            "bytes_down": bytes_down,
        }
        if tls:
            entry["tls"] = tls
        if head is None:
            entry["client"] = client.address
        else:
            entry["client"] = client.origin(head.fields.forwarded_for)
            entry["method"] = head.method.decode("ascii")
            entry["domain"] = head.fields.host
            entry["path"] = head.path[:_MAX_PATH].decode("ascii")
            if self._states_user_agent and (user_agent := _USER_AGENT.search(head.kept)):
                entry["user_agent"] = user_agent[1][:_MAX_TEXT].decode("utf-8", "replace")
        if exchange is not None:
            entry |= _of_exchange(exchange, now)
        if refusal is not None:
            entry["refusal"] = refusal.code
        self._writer.add(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def families(self) -> list[Family]:
        return [
            Family.of("frontage_edge_access_log_dropped", "Lines not written.", "counter", self._writer.dropped_count)
        ]


def timestamp(unix_seconds: float) -> str:
    """RFC 3339, with milliseconds: ``2026-11-23T15:45:00.123+00:00``."""
    milliseconds = int(unix_seconds * 1000)
    return f"{_whole_second(milliseconds // 1000)}.{milliseconds % 1000:03}+00:00"


@lru_cache(maxsize=2)
def _whole_second(unix_seconds: int) -> str:
    """The same for all requests of a second; made for each, it would be a tenth of what a logged request costs."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _of_exchange(exchange: Exchange, now: float) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "application": exchange.route.application_id,
        "seconds": round(now - exchange.started_at, 6),
        "bytes_up": exchange.bytes_up,
        "reused": exchange.reused,
    }
    if exchange.failure is None or exchange.answered_at:
        entry["origin_seconds"] = round((exchange.answered_at or now) - exchange.started_at, 6)
    if exchange.failure is CUT_OFF or exchange.failure is CLIENT_DISCONNECTED:
        entry["cut"] = True
    if exchange.failure is CLIENT_DISCONNECTED:
        entry["client_disconnected"] = True
    if exchange.reason:
        entry["reason"] = exchange.reason[:_MAX_TEXT]
    return entry


class _Writer:
    """Lines in, a file's bytes out. State is grouped by owner: the loop, the thread."""

    def __init__(self, destination: str) -> None:
        # the loop's
        self._lines: list[bytes] = []
        self._lines_bytes = 0
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
        self._lines.append(line)
        self._lines_bytes += len(line)
        if self._lines_bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        size, self._lines_bytes = self._lines_bytes, 0
        if self._handed_bytes - self._settled_bytes + size > _MAX_WAITING_BYTES:
            self._dropped += len(lines)
            return
        self._handed_bytes += size
        self._batches.put(lines)

    def close(self) -> None:
        """What is there is written, unless that takes too long."""
        self.flush()
        self._batches.put(None)
        self._thread.join(_LAST_WORD_SECONDS)

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
