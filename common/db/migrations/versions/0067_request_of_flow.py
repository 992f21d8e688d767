"""The id of the request by which a person moved a connect flow last: what a monitor does next, it does for that one."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns

revision = "0067"
down_revision = "0066"


def upgrade() -> None:
    add_columns({"connect_flows": "request_id text"})
