"""Configurations of the connect modal that a server registers; routes state an origin that was not vouched for."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0074"
down_revision = "0073"


def upgrade() -> None:
    run_script_of(__file__)
