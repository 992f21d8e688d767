"""Only the schema's owner makes triggers of the feed's function."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    run_script_of(__file__)
