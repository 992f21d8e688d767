"""What an order's last finished run was for: ``kind`` is what its next one is for from then on."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns

revision = "0068"
down_revision = "0067"


def upgrade() -> None:
    add_columns({"orders": "issued_kind text"})
