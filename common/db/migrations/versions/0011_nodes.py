"""Leases of monitors, and the state that an edge reports."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    run_script_of(__file__)
