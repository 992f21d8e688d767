"""Bounds what a stolen login of an edge can do: it writes its own leases, and holds no lock that others wait for."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    run_script_of(__file__)
