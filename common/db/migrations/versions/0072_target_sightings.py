"""Monitors note where cname targets lead: one that has led elsewhere for seven days reserves nothing."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0072"
down_revision = "0071"


def upgrade() -> None:
    run_script_of(__file__)
