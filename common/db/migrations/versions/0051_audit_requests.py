"""An index of the changes that a request made."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    create_indexes({"audit_of_request": "on audit (request_id, id) where request_id is not null"})
