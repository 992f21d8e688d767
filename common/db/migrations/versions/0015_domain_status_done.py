"""What only the step before needed."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    run_script_of(__file__)
