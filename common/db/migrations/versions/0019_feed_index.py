"""Changes in the order of their shard's versions."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    create_indexes({"unique changes_of_shard": "on changes (shard, version)"})
