"""No application keeps another's checks waiting: real Postgres."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack

import pytest

from common import monitored_changes
from common.clock import SystemClock
from common.db import checks
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.pool import Connection, Database
from common.records import parse_record
from monitor.checks.checking import CheckQueue
from monitor.checks.rate_limit import CheckRateLimit
from monitor.concurrency_shares import ConcurrencyShares

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


async def add(database: Database, application_id: str, *names: str) -> None:
    async with database.transaction() as connection:
        for name in names:
            await monitored_changes.add(connection, MonitoredKey(application_id, name), (parse_record(a()),), Labels())


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


async def test_whose_domains_have_been_due_the_longest_is_shown_first_but_for_what_is_asked_for(shop: Database) -> None:
    """However many applications there are: else the same few would be checked time and again."""
    await add(shop, APPLICATION, "asked.test", "late.test", "later.test")
    await add(shop, NEIGHBOUR, "latest.test")
    async with shop.transaction() as connection:
        for minutes, name in enumerate(("later.test", "late.test", "latest.test"), start=1):
            await connection.execute(
                "update checks set requested_at = null, due_at = now() - make_interval(mins => $1)"
                " where id = (select id from monitored_domains where domain = $2)",
                minutes,
                name,
            )
        ids = {row["id"]: row["domain"] for row in await connection.fetch("select id, domain from monitored_domains")}
    async with shop.connection() as connection:
        everything, by_line, one_line = [await checks.find_due(connection, most=most) for most in (4, 3, 1)]
    assert [ids[each.id] for each in everything] == ["latest.test", "late.test", "later.test", "asked.test"]
    assert by_line == everything
    assert [ids[each.id] for each in one_line] == ["late.test", "later.test", "asked.test"], "who asks comes first"


async def test_applications_that_are_full_hide_nobody(shop: Database) -> None:
    """They have asked for more, and before the other did."""
    await add(shop, APPLICATION, *(f"m{number}.test" for number in range(20)))
    await add(shop, NEIGHBOUR, "n.test")
    async with shop.connection() as connection:
        (shown,) = await checks.find_due(connection, most=1, full=[APPLICATION])
    assert shown.application_id == NEIGHBOUR


async def test_lines_are_found_by_their_own_indexes_whatever_the_statistics_say(shop: Database) -> None:
    """Where one application has nearly everything, they know of no other."""
    async with shop.transaction() as connection:
        await connection.execute(
            """
            insert into monitored_domains (id, application_id, domain, dns_records)
            select n::text, case when n > 1 then $1 else $2 end, n || '.test', '[]' from generate_series(1, 20000) n
            """,
            APPLICATION,
            NEIGHBOUR,
        )
        for change in ("select", "analyze checks", "update checks set due_at = now()", "analyze checks"):
            await connection.execute(change)
            for mode in ("force_custom_plan", "force_generic_plan"):
                await connection.execute(f"set local plan_cache_mode = {mode}")
                plan = await explain(connection, checks._LINES)
                assert not re.search(r"Seq Scan on checks|checks_due|checks_pkey", plan), plan


async def explain(connection: Connection, statement: str) -> str:
    await connection.execute(f"prepare explained(bigint, text[]) as {statement}")
    rows = await connection.fetch("explain execute explained(5, '{}')")
    await connection.execute("deallocate explained")
    return "\n".join(row[0] for row in rows)


async def test_an_application_whose_domains_hang_leaves_room_for_another(shop: Database) -> None:
    """It has more domains than there are slots, and none of their checks ends."""
    await add(shop, APPLICATION, *(f"m{number}.test" for number in range(150)))
    shares, free = ConcurrencyShares(), 100
    queue = CheckQueue(CheckRateLimit(SystemClock(), checks_per_second=1000.0), shares)

    async def claim() -> list[str]:
        async with shop.transaction() as connection:
            claimed = await queue.claim(connection, most=free, lease_seconds=60)
        return [check.domain for check in claimed]

    with ExitStack() as running:
        while claimed := await claim():
            free -= len(claimed)
            for _ in claimed:
                running.enter_context(shares.hold(APPLICATION))
        assert free == 34
        await add(shop, NEIGHBOUR, "n.test")
        assert await claim() == ["n.test"]
