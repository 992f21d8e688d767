"""What API keys made and ends when they are revoked: sharing links and registered configurations.

A key that expires, or ends as its user gains rights, ends none of it: what it made stays its application's own.
"""

from __future__ import annotations

from common.db import connect_configurations, shares
from common.db.session import Connection


async def end_of_key(connection: Connection, key_id: str) -> None:
    """End the links and the configurations that the key made, with the flows of both. In the transaction that revokes
    the key, after it: `user_keys.hold` keeps the key while something is made with it."""
    for row in await connection.fetch(
        "select id, application_id from connect_configurations where by_key = $1 order by id", key_id
    ):
        await connect_configurations.remove(connection, row["application_id"], row["id"])
    for row in await connection.fetch("select id, application_id from shares where by_key = $1 order by id", key_id):
        await shares.revoke(connection, row["application_id"], row["id"])
