"""Counts the domains that were there before the triggers of the status."""

from __future__ import annotations

from common.db.migrations.scripts import backfill

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    # The table's trigger sets the status. Not many at once: enrolments wait for the tallies that a batch writes.
    backfill(
        "update domains d set active_until = null from ("
        " select domain, product from domains where is_active is null order by domain limit 1000 for no key update"
        ") uncounted where d.domain = uncounted.domain and d.product = uncounted.product"
    )
