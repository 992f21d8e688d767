"""What a step does: a script in one transaction, or online work outside of one.

How to write a step, so that the roles go on working while it is taken over tables of ten million rows
    A step is either a script (`run_script_of`) or online work (`add_columns`, `create_indexes`, `drop_index`,
    `backfill`), never both: what is online cannot be undone, so it must be safe to repeat.
    A script holds its locks until it ends, so it only does what is instant at any size: new tables, functions and
    triggers, columns that are nullable or have a constant default, constraints added NOT VALID, and columns or
    constraints dropped. VALIDATE CONSTRAINT is a script of its own: it reads the table, and blocks no writer.
    A script waits `_LOCK_TIMEOUT` for a lock, because all others queue behind it, and is then tried again. It keeps the
    locks it has while it waits for the next, so columns of several tables are online work.
    Indexes are created CONCURRENTLY. A unique or primary key is made of an index that exists (ADD CONSTRAINT ... USING
    INDEX).
    Rows are filled in batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from alembic import op
from sqlalchemy import AdaptedConnection

_LOCK_TIMEOUT = "500ms"


def run_script_of(step: str) -> None:
    """Run the .sql file beside the step's Python file, whose path is `step` (``__file__``), in the step's transaction.

    Raises: `asyncpg.LockNotAvailableError` when another transaction holds a table's lock for long.
    """
    op.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'")  # begins the transaction
    _execute(Path(step).with_suffix(".sql").read_text("utf-8"))


def add_columns(columns: Mapping[str, str]) -> None:
    """Add the columns that are missing, each in a transaction of its own: no table is locked while another is waited
    for.

    `columns`: table to definition, of a column that is nullable or has a constant default.

    Raises: `asyncpg.LockNotAvailableError`, like `run_script_of`.
    """
    with op.get_context().autocommit_block():
        for table, definition in columns.items():
            # Statements sent together are one transaction.
            _execute(
                f"set local lock_timeout = '{_LOCK_TIMEOUT}'; alter table {table} add column if not exists {definition}"
            )


def create_indexes(indexes: Mapping[str, str]) -> None:
    """Create the indexes that are missing, one by one, while the tables are read and written. What was left invalid by
    a run that ended is made anew.

    `indexes`: name to definition, from ``on`` on; a name may begin with ``unique``.
    """
    with op.get_context().autocommit_block():
        for described, definition in indexes.items():
            unique, _, name = described.rpartition(" ")
            if _fetch(f"select from pg_index where indexrelid = to_regclass('{name}') and not indisvalid"):
                _execute(f"drop index concurrently {name}")
            _execute(f"create {unique} index concurrently if not exists {name} {definition}")


def drop_index(name: str) -> None:
    """Drop the index, if it is still there, while its table is read and written."""
    with op.get_context().autocommit_block():
        _execute(f"drop index concurrently if exists {name}")


def backfill(statement: str) -> None:
    """Repeat `statement`, each time in a transaction of its own, until it changes no row. It must end in a limit."""
    with op.get_context().autocommit_block():
        while not str(_execute(statement)).endswith(" 0"):
            pass


def _execute(script: str) -> Any:
    """By the driver's simple protocol, which takes many statements at once. Returns the last one's status."""
    return _driver().run_async(lambda connection: connection.execute(script))


def _fetch(query: str) -> list[Any]:
    return cast("list[Any]", _driver().run_async(lambda connection: connection.fetch(query)))


def _driver() -> AdaptedConnection:
    return cast("AdaptedConnection", op.get_bind().connection.dbapi_connection)
