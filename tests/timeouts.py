"""Time-outs for tests that are not about time-outs: a busy machine may take its time."""

from __future__ import annotations

from common.db.session import SessionTimeouts

UNHURRIED = SessionTimeouts(
    connect_seconds=30.0,
    acquire_seconds=60.0,
    query_seconds=65.0,
    statement_seconds=60.0,
    lock_seconds=30.0,
    idle_in_transaction_seconds=120.0,
)
