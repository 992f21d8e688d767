"""A monitor that kills itself, as kill -9 would, at one step of its first order: arguments dsn, state directory, step.

Steps are the transactions of an order, each just before and just after its commit, and the issuer's work: at an
authority that counts orders, and so reserves and keeps each.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from common.db.pool import Connection, Database, open_pool

from . import parts

TRANSACTIONS = {  # before and after the commit of each
    "claim": "claimed",
    "reserve": "reserved",
    "record placed": "placed",
    "store": "stored",
    "record live": "live",
}
STEPS = (*TRANSACTIONS, *TRANSACTIONS.values(), "issue")
_BEFORE_COMMIT = {step: number for number, step in enumerate(TRANSACTIONS, 1)}
_AFTER_COMMIT = {step: number for number, step in enumerate(TRANSACTIONS.values(), 1)}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingDatabase:
    def __init__(self, database: Database, step: str) -> None:
        self._database = database
        self._step = step
        self._transactions = 0
        self.connection = database.connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        task = asyncio.current_task()
        assert task is not None
        is_repeated_claim = task.get_name() == "claims: claim now" and self._transactions > 0
        if is_repeated_claim or task.get_name() == "claims: extend leases":  # no step of the order
            async with self._database.transaction() as connection:
                yield connection
            return
        self._transactions += 1
        number = self._transactions
        async with self._database.transaction() as connection:
            yield connection
            if number == _BEFORE_COMMIT.get(self._step):
                die()
        if number == _AFTER_COMMIT.get(self._step):
            die()


async def run(dsn: str, state_dir: Path, step: str) -> None:
    async def die_while_issuing() -> None:
        die()

    issuer = parts.LimitedIssuer(state_dir)
    issuer.before = die_while_issuing if step == "issue" else None
    async with open_pool(dsn, size=4, application_name="dying") as database:
        dying = cast("Database", DyingDatabase(database, step))
        # A lease that does not lapse however slow the machine, so that the order's steps are made once.
        runner = parts.make_runner(dying, issuer, parts.keyring(state_dir), lease_seconds=60, poll_seconds=60)
        await runner.run()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
