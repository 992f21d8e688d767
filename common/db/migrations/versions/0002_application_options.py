"""How an application's origin is asked, signatures, maintenance, and error pages."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_script_of(__file__)
