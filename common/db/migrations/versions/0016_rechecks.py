"""Rechecks of a domain's DNS, asked for by its owner or an operator."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    run_script_of(__file__)
