"""The indexes of all applications' lists hold the application of each domain.

By them a list of many applications' domains is read as one list, rather than one of each application. They take the
places of those without.
"""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes, drop_index

revision = "0065"
down_revision = "0064"

_SHOWN = "include (application_id, is_active)"


def upgrade() -> None:
    create_indexes(
        {
            "domains_of_everyone": f"on domains (product, domain) {_SHOWN}",
            "domains_of_everyone_by_age": f"on domains (product, created_at, domain) {_SHOWN}",
            "domains_of_everyone_by_expiry": "on domains (product, active_until, domain) include (application_id)",
            "domains_inactive_of_everyone": f"on domains (product, domain) {_SHOWN} where not is_active",
            "domains_inactive_of_everyone_by_age": f"on domains (product, created_at, domain) {_SHOWN}"
            " where not is_active",
        }
    )
    for replaced in (
        *("domains_of_product", "domains_of_product_by_age", "domains_of_product_by_expiry"),
        *("domains_inactive_of_product", "domains_inactive_of_product_by_age"),
    ):
        drop_index(replaced)
