"""Which API key began a flow: the flow and the links made from it end when the key is revoked."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns, create_indexes
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Add the columns of the API key, and the indexes by which a key's flows and their links are found."""
    await add_columns(connection, {"connect_flows": "by_key text", "shares": "flow_by_key text"})
    await create_indexes(
        connection,
        {
            "connect_flows_by_key": "on connect_flows (by_key) where by_key is not null",
            "shares_by_key_of_flow": "on shares (flow_by_key) where flow_by_key is not null",
        },
    )
