"""What flows of the connect modal may do, and what ends them: who began them, by which link, with which secret.

Flows and links from before count as begun by a browser whose values no server has registered.
"""

from __future__ import annotations

from common.db.migrations.scripts import add_columns

revision = "0073"
down_revision = "0072"


def upgrade() -> None:
    add_columns(
        {
            "applications": "secret_generation integer not null default 1",
            "shares": "vouched boolean not null default false, add column if not exists parent_id text,"
            " add column if not exists configuration_id text, add column if not exists secret_generation integer",
            "connect_flows": "vouched boolean not null default false,"
            " add column if not exists by_browser boolean not null default true,"
            " add column if not exists share_id text, add column if not exists configuration_id text,"
            " add column if not exists secret_generation integer, add column if not exists ended text",
            "monitored_domains": "vouched boolean not null default false",
            "domains": "origin_vouched boolean not null default true",
        }
    )
