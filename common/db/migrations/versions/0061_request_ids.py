"""The id of the request that caused an order, an event, a delivery, a batch or a change of the feed."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0061"
down_revision = "0060"


def upgrade() -> None:
    run_script_of(__file__)
