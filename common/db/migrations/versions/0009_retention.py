"""Event sequences that can be forgotten."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    run_script_of(__file__)
