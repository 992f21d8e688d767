"""An API key may open one application alone, with which it ends."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns, create_indexes, run_script
from common.db.session import Connection

_CONSTRAINT = "user_keys_application_id_fkey"


async def take(connection: Connection) -> None:
    """Add the column, its index, and the constraint that ends a key with its application."""
    await add_columns(connection, {"user_keys": "application_id text"})
    await create_indexes(
        connection, {"user_keys_by_application": "on user_keys (application_id) where application_id is not null"}
    )
    async with connection.transaction():
        await run_script(
            connection,
            f"alter table user_keys drop constraint if exists {_CONSTRAINT}, add constraint {_CONSTRAINT}"
            " foreign key (application_id) references applications on delete cascade not valid",
        )
    await connection.execute(f"alter table user_keys validate constraint {_CONSTRAINT}")
