"""Traffic of domains, as edges count it."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    run_script_of(__file__)
