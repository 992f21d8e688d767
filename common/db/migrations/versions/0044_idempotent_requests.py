"""Answers kept for requests that are sent again under the same Idempotency-Key."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    run_script_of(__file__)
