"""Events, their deliveries to webhooks, and sharing links."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_script_of(__file__)
