"""Edges report the origins that they cannot connect to."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    run_script_of(__file__)
