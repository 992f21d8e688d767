"""Monitored domains, their checks, and batches."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_script_of(__file__)
