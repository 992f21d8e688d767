"""The shard of each change."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    run_script_of(__file__)
