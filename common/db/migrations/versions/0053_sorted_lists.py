"""Indexes of the sorted lists: each begins with an application and a product, so that a list reads only its own rows.

The index by name takes the place of one without the name's parts, which a search had to look up row by row.
"""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes, drop_index

revision = "0053"
down_revision = "0052"


def upgrade() -> None:
    create_indexes(
        {
            "domains_of_application_by_expiry": "on domains (application_id, product, active_until, domain)",
            "domains_of_application_by_status": "on domains (application_id, product, is_active, domain)",
            "domains_by_expiry": "on domains (active_until, domain, product, application_id)",
            "domains_lapsing_next": "on domains (active_until) where is_active",
            "domains_inactive_by_age": "on domains (created_at, domain, product) where not is_active",
            "monitored_of_application_listed": "on monitored_domains"
            " (application_id, monitored_name(domain, subdomain)) include (domain, subdomain)",
            "monitored_of_application_by_state": "on monitored_domains"
            " (application_id, state, monitored_name(domain, subdomain))",
            "monitored_of_application_by_state_and_age": "on monitored_domains"
            " (application_id, state, date_added, monitored_name(domain, subdomain))",
            "monitored_of_application_by_age": "on monitored_domains"
            " (application_id, date_added, monitored_name(domain, subdomain)) include (domain, subdomain)",
        }
    )
    drop_index("monitored_of_application_by_name")
