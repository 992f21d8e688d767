"""Indexes by which an application's domains are listed, settled and, in the next step, counted."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    create_indexes(
        {
            "domains_listed": "on domains (application_id, product, is_active, created_at, domain)",
            "domains_lapsing": "on domains (application_id, active_until) where is_active",
            "domains_uncounted": "on domains (domain) where is_active is null",
        }
    )
