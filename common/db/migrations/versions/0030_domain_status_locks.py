"""The status of a domain follows only the certificate in service, and a list waits for no other transaction."""

from __future__ import annotations

from common.db.migrations.scripts import run_script_of

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    run_script_of(__file__)
