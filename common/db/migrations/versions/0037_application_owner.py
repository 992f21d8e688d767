"""Applications of an organisation are found by its id, and all of them by name."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    create_indexes(
        {
            "applications_of_organisation": "on applications (organisation_id, id) where organisation_id is not null",
            "applications_by_name": "on applications (lower(name), id)",
        }
    )
