"""Which schema this code is written for, and whether a database has it."""

from __future__ import annotations

from common.db.session import Connection
from common.errors import OperatorError

REVISION = "0069"


async def check_schema(connection: Connection) -> None:
    """Raises: `OperatorError` when the database has another schema than this code's, or none."""
    if (newer := await find_newer_schema(connection)) is not None:
        raise OperatorError(newer)


async def find_newer_schema(connection: Connection) -> str | None:
    """What the operator should know of a schema newer than this code's; None if it is this code's. A process that runs
    already goes on with a newer one.

    Raises: `OperatorError` when the schema is older, or there is none.
    """
    found = None
    if await connection.fetchval("select to_regclass('alembic_version')") is not None:
        found = await connection.fetchval("select version_num from alembic_version")
    if found is None:
        raise OperatorError("the database has no schema yet: run `frontage migrate`")
    if found < REVISION:
        raise OperatorError(f"the database has schema {found}, older than {REVISION}: run `frontage migrate`")
    if found > REVISION:
        return f"the database has schema {found}, newer than this program's {REVISION}: upgrade Frontage"
    return None


async def has_tables(connection: Connection) -> bool:
    """Whether anything is stored in the database's public schema yet."""
    return bool(await connection.fetchval("select exists (select from pg_tables where schemaname = 'public')"))
