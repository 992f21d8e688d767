"""An index of the applications that are being deleted: API processes look for them all the time."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    create_indexes({"applications_being_deleted": "on applications (deleting_at) where deleting_at is not null"})
