"""An index of an application's former cname targets, the last one first."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0058"
down_revision = "0057"


def upgrade() -> None:
    create_indexes(
        {
            "former_targets_of_application": "on former_holders (application_id, target_until desc)"
            " where target_until is not null"
        }
    )
