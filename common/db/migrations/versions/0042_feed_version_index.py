"""Several changes of the feed may have the same version: an index that is not unique instead of one that is."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes, drop_index

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    create_indexes({"changes_by_version": "on changes (shard, version)"})
    drop_index("changes_of_shard")
