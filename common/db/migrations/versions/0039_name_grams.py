"""Functions by which names are found by a part of them."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    run_script_of(__file__)
