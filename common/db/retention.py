"""Retention: what the database may forget, and when. Each function is one bounded statement."""

from __future__ import annotations

from common.db.batches import KEPT_DAYS as BATCH_DAYS
from common.db.session import Connection

ENROLMENT_DAYS = 2
"""SPEC 8 counts enrolments over 24 hours; a day more lets an operator see what was refused."""

EVENT_DAYS = 30
"""Long past the last attempt to deliver one; what a disabled webhook has not been sent by then is too old to act on."""


async def erase_enrolments(connection: Connection, *, most: int = 1000) -> int:
    """Forget enrolments no limit counts any more; the last one of each application and name stays, to tell a first
    from a second.

    Returns how many.
    """
    rows = await connection.fetch(
        """
        delete from enrolments where ctid in (
            select ctid from enrolments old
            where enrolled_at < now() - make_interval(days => $1) and exists (
                select from enrolments later where later.domain = old.domain and later.product = old.product
                and later.application_id is not distinct from old.application_id
                and later.enrolled_at > old.enrolled_at)
            limit $2)
        returning domain
        """,
        ENROLMENT_DAYS,
        most,
    )
    return len(rows)


async def erase_batches(connection: Connection, *, most: int = 1000) -> int:
    """Forget batches, and their items, that nobody may ask about any more and that are over. Returns how many."""
    rows = await connection.fetch(
        """
        delete from batches where id in (
            select id from batches where submitted_at <= now() - make_interval(days => $1) and due_at is null limit $2)
        returning id
        """,
        BATCH_DAYS,
        most,
    )
    return len(rows)


async def erase_events(connection: Connection, *, most: int = 1000) -> int:
    """Forget events and their deliveries; the domains' numbers go on. Returns how many."""
    rows = await connection.fetch(
        """
        delete from events where id in (
            select id from events where created_at < now() - make_interval(days => $1) limit $2)
        returning id
        """,
        EVENT_DAYS,
        most,
    )
    return len(rows)
