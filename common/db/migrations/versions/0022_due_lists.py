"""Due lists that are as long as what is due."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    run_script_of(__file__)
