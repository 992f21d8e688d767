"""The reference from an application to its organisation holds for every row."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    run_script_of(__file__)
