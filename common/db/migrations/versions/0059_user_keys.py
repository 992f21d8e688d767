"""API keys of users; an answer that is kept for a repeated request may belong to a user."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0059"
down_revision = "0058"


def upgrade() -> None:
    run_script_of(__file__)
