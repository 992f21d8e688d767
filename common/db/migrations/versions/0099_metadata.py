"""Applications keep notes of their domains, and choose which of them their origins get."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Add the columns."""
    await add_columns(
        connection,
        {
            "domains": "metadata jsonb",
            "preparations": "metadata jsonb",
            "applications": "metadata_fields text[] not null default '{}'",
        },
    )
