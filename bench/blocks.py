"""Counts the blocks that a session asks of Postgres' buffer cache: a cost that does not depend on the machine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.db.session import Connection

_BLOCKS = """
    select sum(pg_stat_get_xact_blocks_fetched(oid))::bigint from pg_class
    where relnamespace in ('public'::regnamespace, 'pg_toast'::regnamespace)
"""
"""What the session has asked for since it last reported, of the project's tables and indexes."""


@asynccontextmanager
async def count_blocks(connection: Connection, counts: list[int]) -> AsyncIterator[None]:
    """Append to `counts` the number of blocks that the block asks for, deferred triggers included.

    Must be used within one transaction; its end reports them.
    """
    before = await connection.fetchval(_BLOCKS)
    yield
    await connection.execute("set constraints all immediate")
    counts.append(await connection.fetchval(_BLOCKS) - before)
