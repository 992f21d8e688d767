"""Events of one type are found in an index: an application's others may be millions."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    create_indexes({"events_of_type": "on events (application_id, type, id)"})
