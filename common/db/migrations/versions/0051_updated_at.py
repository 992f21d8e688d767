"""When settings were last changed, beside when a row was added."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    run_script_of(__file__)
