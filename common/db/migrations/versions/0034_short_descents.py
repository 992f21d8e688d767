"""The place of a page is found from few tallies."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    run_script_of(__file__)
