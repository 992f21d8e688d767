"""Users, organisations, sessions and the audit log."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    run_script_of(__file__)
