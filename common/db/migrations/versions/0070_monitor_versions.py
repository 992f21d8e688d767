"""Monitors report which version they are."""

from common.db.migrations.scripts import add_columns

revision = "0070"
down_revision = "0069"


def upgrade() -> None:
    add_columns({"monitor_nodes": "software_version text"})
