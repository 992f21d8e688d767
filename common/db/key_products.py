"""What API keys made and ends when they are revoked: flows, sharing links and registered configurations.

A key that expires, or ends as its user gains rights, ends none of it: what it made stays its application's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.db import connect_configurations, flow_ends, shares
from common.db.session import Connection


@dataclass(frozen=True, slots=True)
class RemovedConfiguration:
    """A registered configuration that ended with the key that made it."""

    application_id: str
    id: str
    config: Mapping[str, Any]


async def end_of_key(connection: Connection, key_id: str) -> list[RemovedConfiguration]:
    """End the flows that the key began, and the links and configurations that it made with their flows.

    Runs in the transaction that revokes the key, after it: `user_keys.hold` keeps the key while something is made with
    it. Flows come first: a link is made from a flow only while the flow is locked and has not ended.
    Returns the configurations that ended, which the audit log names.
    """
    await flow_ends.end_of_key(connection, key_id)
    removed = []
    for row in await connection.fetch(
        "select id, application_id from connect_configurations where by_key = $1 order by id", key_id
    ):
        config = await connect_configurations.remove(connection, row["application_id"], row["id"])
        if config is not None:
            removed.append(RemovedConfiguration(row["application_id"], row["id"], config))
    for row in await connection.fetch(
        "select id, application_id from shares where by_key = $1 or flow_by_key = $1 order by id", key_id
    ):
        await shares.revoke(connection, row["application_id"], row["id"])
    return removed
