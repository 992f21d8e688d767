"""Edges follow policies: what they answer for a domain or an application instead of forwarding its requests."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0077"
down_revision = "0076"


def upgrade() -> None:
    run_script_of(__file__)
