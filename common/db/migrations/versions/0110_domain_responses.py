"""A domain may state what its responses carry, before what its application states."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Add the columns."""
    columns = {"domains": "response_policy jsonb", "preparations": "response_policy jsonb"}
    await add_columns(connection, columns)
