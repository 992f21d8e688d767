"""One worker process as its supervisor sees it.

A worker inherits every listening socket of the data path, its control channel, and a file for the stacks of its
threads. This module must not decide anything about workers: that is the roster's.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from typing import Final

from edge.process.child import Child
from edge.process.worker_messages import STACK_SIGNAL, Command, Compose, Report, decode_report, encode

_STACK_POLL_SECONDS: Final = 0.02
_STACK_POLLS: Final = 15  # until a process that does not answer is killed without its stack
_MOST_STACK_BYTES: Final = 32_768


class WorkerProcess:
    """Starts a worker and exchanges messages with it. When `run` ends, for whatever reason, no process is left."""

    def __init__(
        self, number: int, begin: Compose, descriptors: tuple[int, ...], report: Callable[[int, Report], None]
    ) -> None:
        """Start the process.

        `descriptors`: what it inherits besides its control channel. `report` gets `number` and each message.

        Raises: OSError when there can be no process now.
        """
        self.number = number
        self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `run`
        stacks = self._stacks.fileno()
        try:
            self._child = Child(
                ("edge.process.worker", str(begin.pair), str(stacks)),
                (stacks, *descriptors),
                lambda line: report(number, decode_report(line)),
            )
        except BaseException:
            self._stacks.close()
            raise
        self.send(begin)

    @property
    def pid(self) -> int:
        """Return the process' id."""
        return self._child.pid

    def send(self, command: Command) -> None:
        """Send a command."""
        self._child.send(encode(command))

    def kill(self) -> None:
        """Kill the process at once."""
        self._child.kill()

    async def take_stack(self) -> str:
        """Return the stacks of the worker's threads now, in Python's words; empty when it does not write them in time.

        The signal is answered below Python, so that a worker answers which never returns to its loop.
        """
        self._child.signal(STACK_SIGNAL)
        before = size = 0
        for _ in range(_STACK_POLLS):
            await asyncio.sleep(_STACK_POLL_SECONDS)
            before, size = size, os.fstat(self._stacks.fileno()).st_size
            if size and size == before:
                break
        return os.pread(self._stacks.fileno(), _MOST_STACK_BYTES, 0).decode(errors="replace").strip()

    async def run(self) -> int:
        """Exchange messages until the worker exits. Return the exit status, negative for a signal."""
        try:
            return await self._child.run()
        finally:
            self._stacks.close()
