"""The change feed in shards."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    run_script_of(__file__)
