"""Writes many rows into an embedded Postgres at the disk's rate.

While a `bulk_load` is open the server keeps no secondary index, runs no trigger, checks no foreign key and syncs
nothing to disk: only for databases that are thrown away. Primary keys stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

import asyncpg

_SECONDS = 3600.0
_UNSAFE = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "4GB", "autovacuum": "off"}
_SECONDARY = """
    select c.relname as name, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'public'::regnamespace
        and not exists (select from pg_constraint where conindid = i.indexrelid)
    order by pg_relation_size(i.indrelid), c.relname
"""


@contextlib.asynccontextmanager
async def bulk_load(dsn: str, progress: Callable[[str], None] = lambda _: None) -> AsyncIterator[asyncpg.Connection]:
    """Open a session for the rows; at its end create the indexes again, vacuum, and write all to disk.

    `progress` is called with the name of each of these steps before it begins.
    """
    connection = await asyncpg.connect(dsn, command_timeout=_SECONDS)
    try:
        for name, value in _UNSAFE.items():
            await connection.execute(f"alter system set {name} = '{value}'")
        await connection.execute("select pg_reload_conf()")
        await connection.execute(
            "set session_replication_role = replica; set synchronous_commit = off; set maintenance_work_mem = '512MB'"
        )
        indexes = await connection.fetch(_SECONDARY)
        for index in indexes:
            await connection.execute(f'drop index "{index["name"]}"')
        yield connection
        for index in indexes:
            progress(f"index {index['name']}")
            await connection.execute(index["definition"])
        progress("vacuum")
        await connection.execute("vacuum (freeze, analyze)")
        await connection.execute("alter system reset all")
        await connection.execute("select pg_reload_conf()")
        progress("checkpoint")
        await connection.execute("checkpoint")
        await asyncio.to_thread(os.sync)  # what was written without fsync is not what is measured
    finally:
        connection.terminate()
