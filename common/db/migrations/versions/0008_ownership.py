"""Whose a name is: how it was claimed, who held it before, and limits counted per application."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run_script_of(__file__)
