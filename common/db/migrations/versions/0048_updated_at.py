"""When settings were last changed, beside when a row was added."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    run_script_of(__file__)
