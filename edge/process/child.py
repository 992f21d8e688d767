"""A process of ours as its parent sees it: exec'ed, spoken to in lines over a socketpair, waited for.

It inherits the other end of the socketpair and the descriptors it is given, nothing else, and the kernel ends it
with its parent. The meaning of the lines is defined by the parent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from common.logs import get_logger
from common.processes import exited, spawn

LINE_LIMIT_BYTES = 1 << 20
HANG_UP_SECONDS = 2.0  # between a child's last word and its exit

log = get_logger("edge.process.child")


class Child:
    """Starts a process and exchanges lines with it. When `run` ends, for whatever reason, no process is left."""

    def __init__(
        self,
        arguments: Sequence[str],
        descriptors: Sequence[int],
        on_line: Callable[[bytes], None],
        *,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        """Start the process.

        `arguments`: a module's name and its arguments; the child's end of the socketpair is added. `on_line` is called
        with each line the child sends; ValueError from it ends the child.

        Raises: OSError when there can be no process now.
        """
        self._on_line = on_line
        self._writer: asyncio.StreamWriter | None = None
        self._unsent = b""
        self._channel, theirs = socket.socketpair()
        with theirs:
            # The same interpreter and import path as ours; what is installed there now is what runs.
            safe_path = ["-P"] if sys.flags.safe_path else []
            argv = [sys.executable, *safe_path, "-m", *arguments, str(theirs.fileno())]
            try:
                self._process = spawn(argv, env=env, pass_fds=(theirs.fileno(), *descriptors))
            except BaseException:
                self._channel.close()
                raise

    @property
    def pid(self) -> int:
        """Return the process' id."""
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Send a line without blocking: what a hanging child does not read waits here until it is killed."""
        if self._writer is None:
            self._unsent += line
        elif not self._writer.is_closing():
            self._writer.write(line)

    def signal(self, number: int) -> None:
        """Send the process a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the process at once."""
        self._process.kill()

    async def run(self) -> int:
        """Exchange lines until the child exits. Return the exit status, negative for a signal."""
        try:
            await self._exchange_lines()
            with suppress(TimeoutError):
                async with asyncio.timeout(HANG_UP_SECONDS):
                    await exited(self._process)
        finally:
            # A child that closed its channel, or is no longer awaited, must not run unsupervised.
            self._process.kill()
            status = await exited(self._process)
        return status

    async def _exchange_lines(self) -> None:
        reader, self._writer = await asyncio.open_unix_connection(sock=self._channel, limit=LINE_LIMIT_BYTES)
        try:
            self._writer.write(self._unsent)
            await self._listen(reader)
        finally:
            self._writer.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Pass lines on until the child closes its end."""
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                self._on_line(line)
        except ConnectionResetError:
            pass  # the child closed the channel before it read all; its exit status has the reason
        except (OSError, ValueError) as error:
            log.error("a message of a child process could not be read", pid=self.pid, error=str(error))
