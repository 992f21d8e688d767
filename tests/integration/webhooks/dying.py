"""A monitor's deliveries in a process of their own: arguments dsn, state directory, step.

At the step it kills itself, as kill -9 would: just before and after the commits of its first claim and its first
outcome, and between the POST and the note of it. With ``never`` it works until it is killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from common.db import deliveries
from common.db.pool import Connection, Database, open_pool
from common.secrets import load_keyring
from monitor.webhooks.sender import Sender, WebhookResponse

from . import parts

STEPS = ("claim", "claimed", "posted", "note", "noted")
NEVER = "never"
LEASE_SECONDS = 0.5
_BEFORE_COMMIT = {"claim": "claim", "note": "record_delivered"}
_AFTER_COMMIT = {"claimed": "claim", "noted": "record_delivered"}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingDatabase:
    """Dies at the transaction of its step, told by what was called in it: leases are extended meanwhile."""

    def __init__(self, database: Database, step: str) -> None:
        self._database = database
        self._step = step
        self._did: dict[Connection, str] = {}
        self.connection = database.connection

    def watch(self, name: str) -> None:
        """Note calls of this function of `deliveries` that came to something."""
        watched = getattr(deliveries, name)

        async def noting(connection: Connection, *arguments: Any, **options: Any) -> Any:
            result = await watched(connection, *arguments, **options)
            if result != []:
                self._did[connection] = name
            return result

        setattr(deliveries, name, noting)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self._database.transaction() as connection:
            yield connection
            did = self._did.pop(connection, None)
            if did is not None and did == _BEFORE_COMMIT.get(self._step):
                die()
        if did is not None and did == _AFTER_COMMIT.get(self._step):
            die()


class DyingSender:
    def __init__(self, sender: Sender, step: str) -> None:
        self._sender = sender
        self._step = step

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> WebhookResponse:
        answer = await self._sender.post(url, body, headers)
        if self._step == "posted":
            die()
        return answer


async def run(dsn: str, state_dir: Path, step: str) -> None:
    async with open_pool(dsn, size=4, application_name="dying") as database:
        dying = DyingDatabase(database, step)
        dying.watch("claim")
        dying.watch("record_delivered")
        runner = parts.make_runner(
            cast("Database", dying),
            load_keyring(state_dir / "master.key"),
            sender=cast("Sender", DyingSender(parts.a_sender(), step)),
            lease_seconds=LEASE_SECONDS,
            poll_seconds=0.1 if step == NEVER else 60,
        )
        await runner.run()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
