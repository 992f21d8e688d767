"""Requested renewals are counted beside enrolments."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    run_script_of(__file__)
