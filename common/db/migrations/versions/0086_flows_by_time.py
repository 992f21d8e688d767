"""An index by which an application's flows are listed, newest first."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Create the index."""
    await create_indexes(connection, {"connect_flows_by_time": "on connect_flows (application_id, created_at, id)"})
