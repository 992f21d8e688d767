"""ACME accounts and what edges must know of them."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_script_of(__file__)
