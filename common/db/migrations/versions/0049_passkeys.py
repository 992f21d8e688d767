"""Passkeys of users, and when a session confirmed its user."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    run_script_of(__file__)
