"""Which schema this code is written for, and whether it can work with the one that a database has.

A schema may be newer than the program: from `frontage migrate` until each process is replaced, and after the way back
to the version before. The database states which programs it still works with (`OLDEST_PROGRAM` of the one that migrated
it), and a program that it works with runs, starts and is ready.
"""

from __future__ import annotations

import re

from common.db.session import Connection
from common.errors import OperatorError

REVISION = "0113"

OLDEST_PROGRAM = "0070"
"""The oldest `REVISION` whose program works with this schema. A step that breaks the programs before it, because it
drops, renames or narrows what they use, raises this to its own number (a test finds such steps)."""

_STATED = "works with programs from schema "
"""How the database states it: as the comment of the table of the steps, which a backup holds, too."""


def compatibility_statement() -> str:
    """Return the SQL by which `frontage migrate` states which programs its schema works with."""
    return f"comment on table alembic_version is '{_STATED}{OLDEST_PROGRAM}'"


async def check_schema(connection: Connection) -> None:
    """Refuse a database whose schema this program cannot work with.

    Raises: `OperatorError`, also when there is no schema.
    """
    await find_newer_schema(connection)


async def find_newer_schema(connection: Connection) -> str | None:
    """Return a sentence about a schema that is newer than this program's and works with it; None if it is not newer.

    Raises: `OperatorError` when the schema is older, newer and breaks this program, or there is none.
    """
    found, stated = None, None
    if await connection.fetchval("select to_regclass('alembic_version')") is not None:
        row = await connection.fetchrow(
            "select version_num, obj_description('alembic_version'::regclass) from alembic_version"
        )
        found, stated = row or (None, None)
    if found is None:
        raise OperatorError("the database has no schema yet: run `frontage migrate`")
    if found < REVISION:
        raise OperatorError(f"the database has schema {found}, older than {REVISION}: run `frontage migrate`")
    if found == REVISION:
        return None
    newer = f"the database has schema {found}, newer than this program's {REVISION}"
    if _oldest_program(stated, found) > REVISION:
        raise OperatorError(f"{newer}, and does not work with it: upgrade Frontage")
    return f"{newer}, and works with it: upgrade Frontage when you can"


def _oldest_program(stated: str | None, schema: str) -> str:
    """Return the oldest program that the schema works with, by its statement; without one, the schema's own."""
    match = re.fullmatch(rf"{_STATED}(\d{{4}})", stated or "")
    return match[1] if match else schema


async def has_tables(connection: Connection) -> bool:
    """Return whether anything is stored in the database's public schema yet."""
    return bool(await connection.fetchval("select exists (select from pg_tables where schemaname = 'public')"))
