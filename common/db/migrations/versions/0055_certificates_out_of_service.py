"""A certificate that leaves service with its domain changes no domain: nothing is counted anew."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0055"
down_revision = "0054"


def upgrade() -> None:
    run_script_of(__file__)
