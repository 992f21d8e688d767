"""No application keeps another's checks waiting: real Postgres, a real name server."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.db import checks, monitored_domains
from common.db.monitored_domains import Key, Labels
from common.db.pool import Database
from common.records import parse_record

from . import parts
from .parts import APPLICATION, a

NEIGHBOUR = "neighbour"


@pytest.fixture
async def shop(database: Database) -> Database:
    """Of two applications."""
    await parts.add_application(database)
    async with database.transaction() as connection:
        await connection.execute(
            "insert into applications select (jsonb_populate_record(applications, $1)).* from applications",
            {"id": NEIGHBOUR, "cname_target": NEIGHBOUR},
        )
    return database


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    async with NameServer.serve(Zone()) as server:
        yield server


async def add(database: Database, application_id: str, *names: str) -> None:
    async with database.transaction() as connection:
        for name in names:
            await monitored_domains.add(connection, Key(application_id, name), (parse_record(a()),), Labels())


async def test_of_more_than_can_be_taken_every_application_s_lines_are_shown(shop: Database) -> None:
    await add(shop, APPLICATION, *(f"m{number}.test" for number in range(60)))
    async with shop.transaction() as connection:
        await connection.execute(
            "update checks set due_at = now() - interval '1 day',"
            " requested_at = case when id in (select id from checks limit 30) then requested_at end"
        )
    await add(shop, NEIGHBOUR, "n.test")
    async with shop.connection() as connection:
        everything = await checks.find_due(connection, most=61)
        shown = await checks.find_due(connection, most=60)
    assert len(everything) == 61
    assert Counter((each.application_id, each.is_routine) for each in shown) == {
        (APPLICATION, False): 30,
        (APPLICATION, True): 30,
        (NEIGHBOUR, False): 1,
    }


async def test_an_application_whose_domains_hang_does_not_keep_another_waiting(
    shop: Database, server: NameServer, dsn: str
) -> None:
    """More of its domains than there are places are never answered, and hold one until their time is over."""
    names = [f"m{number}.test" for number in range(700)]
    for name in names:
        server.zone.misbehave(name, Behaviour.TIMEOUT)
    server.zone.add("n.test", "A", "192.0.2.1")
    await add(shop, APPLICATION, *names)
    checking = parts.make_checking(shop, parts.address_of(server), poll_seconds=60)

    async def is_checked() -> bool:
        rows = await parts.fetch(shop, "select domain from monitored_domains where last_checked_at is not null")
        assert {row["domain"] for row in rows} <= {"n.test"}, "the others' time is not over"
        return bool(rows)

    async with parts.running(checking, dsn=dsn):
        await parts.until(lambda: _are_asked(server, 300), seconds=20)
        await add(shop, NEIGHBOUR, "n.test")
        await parts.until(is_checked, seconds=10)


async def _are_asked(server: NameServer, count: int) -> bool:
    return len({question.name for question in server.zone.questions}) >= count
