"""The status of domains as a column, counted per application."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    run_script_of(__file__)
