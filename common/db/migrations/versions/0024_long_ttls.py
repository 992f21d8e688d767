"""Checks remember that a record's TTL is longer than the check interval."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    run_script_of(__file__)
