"""The place of a page is found from few tallies."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    run_script_of(__file__)
