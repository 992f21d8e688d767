"""Indexes of what operators look at: certificates by expiry, and orders whose last attempt failed."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    create_indexes(
        {
            "certificates_by_expiry": "on certificates (not_after) where released_at is null",
            "orders_failing": "on orders (last_error, domain) where last_error is not null",
        }
    )
