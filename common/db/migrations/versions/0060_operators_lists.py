"""Indexes of all applications' lists: each begins with a product or a state, of which there may be few among many.

They hold all that orders and filters a list, so that a walk of 10,000 names reads no row.
"""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes, drop_index

revision = "0060"
down_revision = "0059"


def upgrade() -> None:
    create_indexes(
        {
            "domains_of_product": "on domains (product, domain) include (is_active)",
            "domains_of_product_by_age": "on domains (product, created_at, domain) include (is_active)",
            "domains_of_product_by_expiry": "on domains (product, active_until, domain)",
            "domains_inactive_of_product": "on domains (product, domain) include (is_active) where not is_active",
            "domains_inactive_of_product_by_age": "on domains (product, created_at, domain) include (is_active)"
            " where not is_active",
            "monitored_listed": "on monitored_domains (monitored_name(domain, subdomain), application_id)"
            " include (domain, subdomain, state)",
            "monitored_listed_by_age": "on monitored_domains"
            " (date_added, monitored_name(domain, subdomain), application_id) include (domain, subdomain, state)",
            "monitored_of_application_in_state": "on monitored_domains"
            " (application_id, state, monitored_name(domain, subdomain)) include (domain, subdomain)",
            "monitored_of_application_in_state_by_age": "on monitored_domains"
            " (application_id, state, date_added, monitored_name(domain, subdomain)) include (domain, subdomain)",
            "monitored_not_present": "on monitored_domains"
            " (state, monitored_name(domain, subdomain), application_id) include (domain, subdomain)"
            " where state <> 'present'",
            "monitored_not_present_by_age": "on monitored_domains"
            " (state, date_added, monitored_name(domain, subdomain), application_id) include (domain, subdomain)"
            " where state <> 'present'",
        }
    )
    for replaced in (
        *("domains_by_age", "domains_by_expiry", "domains_inactive", "domains_inactive_by_age"),
        *("monitored_by_name", "monitored_by_age", "monitored_missing"),
        *("monitored_of_application_by_state", "monitored_of_application_by_state_and_age"),
    ):
        drop_index(replaced)
