"""Applications, domains, certificates, orders, and the change feed that edges follow."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_script_of(__file__)
