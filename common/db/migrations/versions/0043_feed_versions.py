"""One version of the feed for each commit that publishes."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    run_script_of(__file__)
