"""Indexes of the two steps before: whose a name is, and which rows have expired."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    create_indexes(
        {
            # A root above another application's cname target.
            "applications_by_reversed_target": 'on applications ((reverse(cname_target) collate "C"))',
            "applications_by_reversed_secure_target": 'on applications ((reverse(secure_cname_target) collate "C"))'
            " where secure_cname_target is not null",
            # Found by application when it is deleted.
            "shares_of_application": "on shares (application_id)",
            "batches_of_application": "on batches (application_id)",
            # Found by retention.
            "enrolments_by_age": "on enrolments (enrolled_at)",
            "certificates_by_release": "on certificates (released_at) where released_at is not null",
            "revocations_by_age": "on revocations (revoked_at) where revoked_at is not null",
            "event_sequences_by_review": "on event_sequences (review_at)",
        }
    )
