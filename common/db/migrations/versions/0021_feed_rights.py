"""Whose rights the feed's functions have."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    run_script_of(__file__)
