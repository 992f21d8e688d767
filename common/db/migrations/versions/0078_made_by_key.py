"""Which API key made a sharing link or registered a configuration: both end when the key is revoked."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns, create_indexes
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Add the columns of the API key, and the indexes by which a key's links and configurations are found."""
    await add_columns(connection, {"shares": "by_key text", "connect_configurations": "by_key text"})
    await create_indexes(
        connection,
        {
            "shares_by_key": "on shares (by_key) where by_key is not null",
            "connect_configurations_by_key": "on connect_configurations (by_key) where by_key is not null",
        },
    )
