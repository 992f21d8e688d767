"""The id of the request that caused an order, an event, a delivery, a batch or a change of the feed: its
``X-Request-Id``; null where a process or a command did.

Orders, changes and deliveries are found by their keys, which the audit log and the events of the request name.
"""

from __future__ import annotations

from common.db.migrations.scripts import add_columns

revision = "0061"
down_revision = "0060"


def upgrade() -> None:
    add_columns(
        {
            "orders": "request_id text",  # of the request that made it, or made it run again
            "events": "request_id text",
            "deliveries": "request_id text",  # of the request that last asked for it: the event's, or a replay's
            "batches": "request_id text",
            "changes": "request_id text",  # of the request that published the present version
        }
    )
