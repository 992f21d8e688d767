"""The index of an application's sharing links."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    create_indexes({"shares_of_application": "on shares (application_id, created_at, id)"})
