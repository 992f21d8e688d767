"""The life of certificates: the CA's limits as a ledger, renewal, revocation."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_script_of(__file__)
