"""The work of checking a domain: a row of its own."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_script_of(__file__)
