"""Clients that keep an edge busy while something happens to it."""

from __future__ import annotations

import asyncio

from tests.component.edge_process import exchange
from tests.waiting import until


class Load:
    """Clients that ask without pause, 20 times a connection; counts what broke."""

    def __init__(self, port: int, clients: int = 8) -> None:
        self.answers: list[int] = []  # pids
        self.broken: list[int | None] = []  # the pid that last answered on the broken connection
        self._stop = False
        self._tasks = [asyncio.create_task(self._ask_on(port)) for _ in range(clients)]

    async def _ask_on(self, port: int) -> None:
        while not self._stop:
            pid = None
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                for _ in range(20):
                    if self._stop or writer.is_closing():
                        break
                    pid = int((await exchange(reader, writer)).split()[0])
                    self.answers.append(pid)
                    await asyncio.sleep(0.002)
            except (OSError, EOFError):
                self.broken.append(pid)
            finally:
                writer.close()

    async def answered_by(self, pid: int) -> None:
        before = len(self.answers)
        await until(lambda: pid in self.answers[before:])

    async def end(self) -> None:
        self._stop = True
        await asyncio.wait_for(asyncio.gather(*self._tasks), 30)
