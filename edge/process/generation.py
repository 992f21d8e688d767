"""One generation of the edge, seen by the upgrade parent: a supervisor and its workers, all of one version."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from common.errors import FrontageError
from common.logs import get_logger
from edge.process.child import Child
from edge.process.generation_messages import (
    Begin,
    Command,
    Prepare,
    Prepared,
    Report,
    Serving,
    StandBack,
    StoodBack,
    TakeOver,
    decode_report,
    encode,
)

log = get_logger("edge.process.generation")


class Ended(FrontageError):
    """The generation is gone; it has written the reason to standard error itself, unless a signal ended it."""

    def __init__(self, status: int) -> None:
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        super().__init__(f"ended {how}: its own last words, if any, stand in the log")
        self.status = status


class Generation:
    """Commands one generation. Created by the upgrade parent, within its loop.

    `life` ends when no process of it is left, cancelled or not.
    """

    def __init__(self, module: str, begin: Begin, env: Mapping[str, str]) -> None:
        """Start the generation's supervisor.

        Raises: OSError when there can be no process now.
        """
        self._awaited: dict[type[Report], asyncio.Future[None]] = {}
        self._child = Child((module,), (*begin.http, *begin.https, begin.admin, *begin.dns), self._on_line, env=env)
        self.send(begin)
        self.life = asyncio.create_task(self._child.run(), name=f"generation {self.pid}")

    @property
    def pid(self) -> int:
        """Return the supervisor's process id."""
        return self._child.pid

    def send(self, command: Command) -> None:
        """Send a command that has no answer."""
        self._child.send(encode(command))

    async def prepare(self) -> None:
        """Have the generation start workers that could accept.

        Raises: `Ended`.
        """
        await self._ask(Prepare(), Prepared)

    async def take_over(self) -> None:
        """Have the generation take the active role and accept.

        Raises: `Ended`.
        """
        await self._ask(TakeOver(), Serving)

    async def stand_back(self) -> None:
        """Have the generation give up the active role.

        Raises: `Ended`.
        """
        await self._ask(StandBack(), StoodBack)

    async def end(self) -> None:
        """Kill the generation at once."""
        self._child.kill()
        await asyncio.wait({self.life})

    async def _ask(self, command: Command, answer: type[Report]) -> None:
        answered = self._awaited[answer] = asyncio.get_running_loop().create_future()
        self.send(command)
        await asyncio.wait({answered, self.life}, return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise Ended(self.life.result())

    def _on_line(self, line: bytes) -> None:
        report = decode_report(line)
        awaited = self._awaited.pop(type(report), None) if report else None
        if awaited is not None and not awaited.done():
            awaited.set_result(None)
