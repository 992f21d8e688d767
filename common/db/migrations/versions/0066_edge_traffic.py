"""Edges report how many requests they served in the last minute."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0066"
down_revision = "0065"


def upgrade() -> None:
    run_script_of(__file__)
