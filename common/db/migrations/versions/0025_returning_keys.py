"""A key that returns while its tombstone is purged is published."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    run_script_of(__file__)
