"""Lists that go back in time, and totals, read as few blocks among many rows as they show rows."""

from __future__ import annotations

import pytest

from bench.blocks import count_blocks
from common.db import domain_totals, events
from common.db.pool import Database
from tests.rows import add_application

ROWS = 20_000
FEW_BLOCKS = 60
APPLICATION = "app"


@pytest.fixture
async def eventful(database: Database) -> Database:
    """An application with many events, all but one of one type, each about a domain of its own."""
    async with database.connection() as connection:
        await add_application(connection, APPLICATION)
        await connection.execute(
            "insert into events (id, application_id, type, domain, sequence, fields)"
            " select 'evt_' || lpad(to_hex(n), 34, '0'), 'app',"
            "  case n when 7 then 'domain.flow.completed' else 'domain.power' end, n || '.test', 1, '{}'"
            " from generate_series(1, $1) n",
            ROWS,
        )
        await connection.execute("vacuum analyze events")
    return database


@pytest.mark.parametrize(
    ("event_type", "domain", "found"),
    [
        ("domain.flow.completed", None, ["7.test"]),
        ("webhook.test", None, []),
        ("domain.power", None, ["20000.test", "19999.test"]),
        (None, "12345.test", ["12345.test"]),
        ("domain.power", "12345.test", ["12345.test"]),
        ("webhook.test", "12345.test", []),
        (None, None, ["20000.test", "19999.test"]),
    ],
)
async def test_events_of_a_type_or_a_domain_are_found_among_many(
    eventful: Database, event_type: str | None, domain: str | None, found: list[str]
) -> None:
    blocks: list[int] = []
    async with eventful.transaction() as connection, count_blocks(connection, blocks):
        listed = await events.list_events(
            connection, APPLICATION, before=None, limit=2, event_type=event_type, domain=domain
        )
    assert [event.domain for event in listed] == found
    assert blocks[0] <= FEW_BLOCKS


async def test_totals_read_no_tallies_of_short_spans(database: Database) -> None:
    async with database.transaction() as connection:
        await add_application(connection, APPLICATION)
        await connection.execute(
            "insert into domains (domain, product, application_id, created_at)"
            " select n || '.test', 'power', 'app', now() - n * interval '1 hour' from generate_series(1, 1000) n"
        )
    async with database.connection() as connection:
        await connection.execute("vacuum analyze domain_tallies, domains")
    blocks: list[int] = []
    async with database.transaction() as connection, count_blocks(connection, blocks):
        totals = await domain_totals.count_domains(connection, [APPLICATION])
    assert (totals.active, totals.inactive) == (1000, 0)
    assert blocks[0] <= FEW_BLOCKS
