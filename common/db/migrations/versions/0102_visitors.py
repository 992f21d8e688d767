"""Applications decide who may visit a domain, how often, and over which TLS."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Add the columns."""
    await add_columns(connection, {"domains": "visitors jsonb", "preparations": "visitors jsonb"})
