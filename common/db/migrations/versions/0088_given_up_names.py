"""An index by which the names that an application gave up are listed."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes
from common.db.session import Connection


async def take(connection: Connection) -> None:
    """Create the index."""
    definition = 'on former_holders (application_id, domain collate "C") where target_until is null'
    await create_indexes(connection, {"former_holders_given_up": definition})
