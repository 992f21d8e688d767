"""The change feed states the request that published a change."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    run_script_of(__file__)
