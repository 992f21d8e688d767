"""The keys that sign Domain Connect requests."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    run_script_of(__file__)
