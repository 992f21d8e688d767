"""One worker process as its supervisor sees it: exec'ed, spoken to over a socketpair, waited for.

A worker inherits every listening socket and the other end of the socketpair, nothing else. This module must
not decide anything about workers: that is the roster's.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

from common.logs import get_logger
from common.processes import exited, spawn
from edge.worker_control import LINE_LIMIT_BYTES, Begin, Order, Report, decode_report, encode

HANG_UP_SECONDS = 2.0  # between a worker's last word and its exit

log = get_logger("edge.worker_process")


class WorkerProcess:
    """Created, started and awaited by the supervisor. When `run` ends, for whatever reason, no process is left."""

    def __init__(
        self, number: int, begin: Begin, descriptors: tuple[int, ...], report: Callable[[int, Report], None]
    ) -> None:
        """`descriptors`: what it inherits besides its control channel. `report` gets `number` and what it says."""
        self.number = number
        self._begin = begin
        self._report = report
        self._writer: asyncio.StreamWriter | None = None
        self._channel, theirs = socket.socketpair()
        with theirs:
            # The same interpreter and import path as ours, so that both run the same code.
            safe_path = ["-P"] if sys.flags.safe_path else []
            argv = [sys.executable, *safe_path, "-m", "edge.worker", str(begin.gate), str(theirs.fileno())]
            try:
                self._process = spawn(argv, env=os.environ, pass_fds=(theirs.fileno(), *descriptors))
            except BaseException:
                self._channel.close()
                raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, order: Order) -> None:
        """Never blocks: what a hanging worker does not read waits here until it is killed."""
        if self._writer and not self._writer.is_closing():
            self._writer.write(encode(order))

    def kill(self) -> None:
        self._process.kill()

    async def run(self) -> int:
        """Until its exit; the exit status, negative for a signal."""
        try:
            await self._converse()
            with suppress(TimeoutError):
                async with asyncio.timeout(HANG_UP_SECONDS):
                    await exited(self._process)
        finally:
            # Whoever hung up on us, or whom we stop waiting for, must not go on serving unsupervised.
            self._process.kill()
            status = await exited(self._process)
        return status

    async def _converse(self) -> None:
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel, limit=LINE_LIMIT_BYTES)
        try:
            self.tell(self._begin)
            await self._listen(reader)
        finally:
            self._writer.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Pass its reports on until it hangs up."""
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                self._report(self.number, decode_report(line))
        except (OSError, ValueError) as error:
            log.error("a worker was not understood", worker=self.number, error=str(error))
