"""Applications can have uploads taken in whole before the origin is asked."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    run_script_of(__file__)
