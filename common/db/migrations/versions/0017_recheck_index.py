"""The index of rechecks that are due."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    create_indexes({"orders_recheck_due": "on orders (due_at) where recheck_requested_at is not null"})
