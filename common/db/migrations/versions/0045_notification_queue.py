"""A full queue of notifications fails no commit."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    run_script_of(__file__)
