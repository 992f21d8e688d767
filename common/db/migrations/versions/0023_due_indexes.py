"""Indexes of due lists, each as long as what is in the list."""

from __future__ import annotations

from common.db.migrations.scripts import create_indexes

revision = "0023"
down_revision = "0022"

_AWAITED = "due_at is not null and kind <> 'renewal' and recheck_requested_at is null"
_ROUTINE = "due_at is not null and kind = 'renewal' and recheck_requested_at is null"


def upgrade() -> None:
    create_indexes(
        {
            "webhook_endpoints_quick": "on webhook_endpoints (due_at)"
            " where due_at is not null and disabled_at is null and not is_slow",
            "webhook_endpoints_slow": "on webhook_endpoints (due_at)"
            " where due_at is not null and disabled_at is null and is_slow",
            # Awaited orders, among millions that wait for their renewal.
            "orders_awaited": f"on orders (due_at) where {_AWAITED}",
            # Each application's own lines of all lanes, so that no application keeps another waiting.
            "orders_awaited_of_application": f"on orders (application_id, due_at) where {_AWAITED}",
            "orders_routine_of_application": f"on orders (application_id, due_at) where {_ROUTINE}",
            "orders_rechecks_of_application": "on orders (application_id, due_at)"
            " where recheck_requested_at is not null",
        }
    )
