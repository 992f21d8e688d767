"""An index of the events that a request caused."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0063"
down_revision = "0062"


def upgrade() -> None:
    create_indexes({"events_of_request": "on events (request_id, id) where request_id is not null"})
