"""Two edges with one node id, as after a copy of a state directory, are told apart."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0076"
down_revision = "0075"


def upgrade() -> None:
    run_script_of(__file__)
