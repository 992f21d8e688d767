"""Edges report their software version, since when they hold a copy, and their last failed upgrade."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    run_script_of(__file__)
