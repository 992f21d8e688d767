"""Flows of the connect modal."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    run_script_of(__file__)
