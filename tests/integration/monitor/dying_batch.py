"""A monitor that kills itself, as kill -9 would, in its n-th transaction: arguments dsn, n, "before" or "after" the
commit. The first claims the batch, the others do an item each, the last ends the batch."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import cast

from common.db import batches
from common.db.pool import Connection, Database, open_pool
from monitor.batches.processing import Processing
from monitor.claims import Runner


class DyingDatabase:
    def __init__(self, database: Database, number: int, moment: str) -> None:
        self._database = database
        self._left = number
        self._moment = moment
        self.connection = database.connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        self._left -= 1
        dies = self._left == 0
        async with self._database.transaction() as connection:
            yield connection
            if dies and self._moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)


async def run(dsn: str, number: int, moment: str) -> None:
    async with open_pool(dsn, size=4, application_name="dying") as database:
        dying = cast("Database", DyingDatabase(database, number, moment))
        perform = Processing(dying).perform
        await Runner(dying, batches, perform, concurrency=1, random=Random(), lease_seconds=0.5).run()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
