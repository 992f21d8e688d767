"""What an application has been set up to do, as rows that its first steps leave show. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from common.db.events import TEST
from common.db.session import Connection

_ENTRIES = 500  # of the audit log are looked through, the oldest: a program's first call is among them, or never was


@dataclass(frozen=True, slots=True)
class SetupProgress:
    """The steps that an application has done at least once."""

    has_called: bool
    """A program changed something with the application's token."""
    has_tested_webhook: bool
    """A test event was delivered."""
    has_domain: bool
    has_flow: bool
    """A person opened the connect modal."""


async def find_setup_progress(connection: Connection, application_id: str) -> SetupProgress:
    """Return which steps an application has done; each is one look into an index."""
    row = await connection.fetchrow(
        """
        select
            exists (
                select from (select way from audit where application_id = $1 order by id limit $3) first_entries
                where way = 'api'
            ) as has_called,
            exists (
                select from events e join deliveries d on d.event_id = e.id
                where e.application_id = $1 and e.type = $2 and d.status = 'delivered'
            ) as has_tested_webhook,
            exists (select from domains where application_id = $1) as has_domain,
            exists (select from connect_flows where application_id = $1) as has_flow
        """,
        application_id,
        TEST,
        _ENTRIES,
    )
    assert row is not None, "a select without a table has one row"
    return SetupProgress(**row)
