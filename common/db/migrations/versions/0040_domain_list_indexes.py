"""Indexes of the list of all products' domains: by name, by age, and by a part of the name."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    create_indexes(
        {
            "domains_by_age": "on domains (created_at, domain, product, application_id)",
            "domains_of_application_by_age": "on domains (application_id, product, created_at, domain)",
            "domains_inactive": "on domains (domain, product) where not is_active",
            "domains_by_grams": "on domains using gin (name_grams(domain))",
            "monitored_by_name": "on monitored_domains (monitored_name(domain, subdomain), application_id)",
            "monitored_of_application_by_name": "on monitored_domains"
            " (application_id, monitored_name(domain, subdomain))",
            "monitored_by_age": "on monitored_domains (date_added, monitored_name(domain, subdomain), application_id)",
            "monitored_missing": "on monitored_domains (application_id, monitored_name(domain, subdomain))"
            " where state = 'missing'",
            "monitored_by_grams": "on monitored_domains using gin (name_grams(monitored_name(domain, subdomain)))",
            "certificates_of_application_by_expiry": "on certificates (application_id, not_after)"
            " where released_at is null",
        }
    )
