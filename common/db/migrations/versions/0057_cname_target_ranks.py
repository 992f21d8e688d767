"""Since when a name is an application's cname target, and which names were: so that naming one takes no domain."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0057"
down_revision = "0056"


def upgrade() -> None:
    run_script_of(__file__)
