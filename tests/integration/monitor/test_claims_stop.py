"""A runner that is stopped leaves no lease behind, at whatever moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from common.db import order_queue
from common.db.pool import Connection, Database
from common.secrets import Keyring

from . import parts
from .parts import DOMAIN, CountingIssuer


class SlowCommit:
    """A database whose first commit takes effect, and is answered once `answer` is set."""

    def __init__(self, database: Database) -> None:
        self.committed = asyncio.Event()
        self.answer = asyncio.Event()
        self._database = database
        self.connection = database.connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self._database.transaction() as connection:
            yield connection
        if not self.committed.is_set():
            self.committed.set()
            await self.answer.wait()


async def test_stopped_while_a_claim_commits_it_hands_the_claim_back(
    shop: Database, keys: Keyring, tmp_path: Path
) -> None:
    """Otherwise the order waits for the whole lease, and visitors of its domain in vain."""
    await parts.power(shop)
    slow, issuer = SlowCommit(shop), CountingIssuer(tmp_path)
    running = asyncio.create_task(parts.make_runner(cast("Database", slow), issuer, keys).run())
    await asyncio.wait_for(slow.committed.wait(), 20)
    running.cancel()
    slow.answer.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with shop.transaction() as connection:
        [order] = await order_queue.claim(connection, most=1, lease_seconds=10)
    assert order.key == DOMAIN
    assert issuer.issued == []
