"""One worker process as its supervisor sees it.

A worker inherits every listening socket of the data path and its control channel. This module must not decide
anything about workers: that is the roster's.
"""

from __future__ import annotations

from collections.abc import Callable

from edge.process.child import Child
from edge.process.worker_messages import Command, Compose, Report, decode_report, encode


class WorkerProcess:
    """Created, started and awaited by the supervisor. When `run` ends, for whatever reason, no process is left."""

    def __init__(
        self, number: int, begin: Compose, descriptors: tuple[int, ...], report: Callable[[int, Report], None]
    ) -> None:
        """`descriptors`: what it inherits besides its control channel. `report` gets `number` and each message.

        Raises: OSError when there can be no process now.
        """
        self.number = number
        self._child = Child(
            ("edge.process.worker", str(begin.pair)), descriptors, lambda line: report(number, decode_report(line))
        )
        self.send(begin)

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, command: Command) -> None:
        self._child.send(encode(command))

    def kill(self) -> None:
        self._child.kill()

    async def run(self) -> int:
        """Until its exit; the exit status, negative for a signal."""
        return await self._child.run()
