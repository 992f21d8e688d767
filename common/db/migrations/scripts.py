"""What a step of the schema does: a script in one transaction, or online work outside of one.

How to write a step, so that the roles go on working while it is taken over tables of ten million rows
    A step is a file of `versions`, named by its number: a script (``NNNN_name.sql``), or online work (``NNNN_name.py``
    with a coroutine function ``take`` of one argument, the connection). What is online cannot be undone, so it must be
    safe to repeat.
    A script holds its locks until it ends, so it only does what is instant at any size: new tables, functions and
    triggers, columns that are nullable or have a constant default, constraints added NOT VALID, and columns or
    constraints dropped. VALIDATE CONSTRAINT is a script of its own: it reads the table, and blocks no writer.
    A script waits `_LOCK_TIMEOUT` for a lock, because all others queue behind it, and is then tried again. It keeps the
    locks it has while it waits for the next, so columns of several tables are online work (`add_columns`).
    Indexes are created CONCURRENTLY (`create_indexes`). A unique or primary key is made of an index that exists (ADD
    CONSTRAINT ... USING INDEX).
    Rows are filled in batches (`backfill`).
"""

from __future__ import annotations

from collections.abc import Mapping

from common.db.session import Connection

_LOCK_TIMEOUT = "500ms"


async def run_script(connection: Connection, script: str) -> None:
    """Run the statements of `script` in the connection's transaction.

    Raises: `asyncpg.LockNotAvailableError` when another transaction holds a table's lock for long.
    """
    await connection.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'; {script}")


async def add_columns(connection: Connection, columns: Mapping[str, str]) -> None:
    """Add the columns that are missing, each in a transaction of its own.

    No table is locked while another is waited for.

    `columns`: table to definition, of a column that is nullable or has a constant default.

    Raises: `asyncpg.LockNotAvailableError`, like `run_script`.
    """
    for table, definition in columns.items():
        async with connection.transaction():
            await run_script(connection, f"alter table {table} add column if not exists {definition}")


async def create_indexes(connection: Connection, indexes: Mapping[str, str]) -> None:
    """Create the indexes that are missing, one by one, while the tables are read and written.

    An index that a run left invalid when it ended is made anew.

    `indexes`: name to definition, from ``on`` on; a name may begin with ``unique``.
    """
    for described, definition in indexes.items():
        unique, _, name = described.rpartition(" ")
        if await connection.fetch("select from pg_index where indexrelid = to_regclass($1) and not indisvalid", name):
            await connection.execute(f"drop index concurrently {name}")
        await connection.execute(f"create {unique} index concurrently if not exists {name} {definition}")


async def drop_index(connection: Connection, name: str) -> None:
    """Drop the index, if it is still there, while its table is read and written."""
    await connection.execute(f"drop index concurrently if exists {name}")


async def backfill(connection: Connection, statement: str) -> None:
    """Repeat `statement`, each time in a transaction of its own, until it changes no row. It must end in a limit."""
    while not (await connection.execute(statement)).endswith(" 0"):
        pass
