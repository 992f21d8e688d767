"""When settings were last changed, beside when a row was added."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0052"
down_revision = "0051"


def upgrade() -> None:
    run_script_of(__file__)
