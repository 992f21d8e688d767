"""Find what a link or a configuration has made; and distrust origins that flows set before browsers were bounded."""

from __future__ import annotations

from common.db.migrations.scripts import backfill, create_indexes

revision = "0075"
down_revision = "0074"

_BY_FLOWS = """
    update domains set origin_vouched = false where (domain, product) in (
        select d.domain, d.product
        from connect_flows f cross join jsonb_to_recordset(f.enrolments)
            as e (name text, product text, status text, "applicationUrl" text)
        join domains d on d.domain = e.name and d.product = e.product and d.application_id = f.application_id
        join applications a on a.id = d.application_id
        where e.status = 'success' and d.application_url = e."applicationUrl" and d.origin_vouched
            and d.application_url is distinct from a.application_url
            and coalesce(d.updated_at, '-infinity') <= f.updated_at
        limit 1000)
"""


def upgrade() -> None:
    create_indexes(
        {
            "shares_by_parent": "on shares (parent_id) where parent_id is not null",
            "shares_by_configuration": "on shares (configuration_id) where configuration_id is not null",
            "connect_flows_by_share": "on connect_flows (share_id) where share_id is not null",
            "connect_flows_by_configuration": "on connect_flows (configuration_id) where configuration_id is not null",
        }
    )
    backfill(_BY_FLOWS)
