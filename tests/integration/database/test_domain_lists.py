"""Lists of domains: status, totals and pages are those of the rows, and a page costs the same wherever it is."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest

from common.db import domain_pages
from common.db.domain_pages import DomainPage
from common.db.domains import Product, Status
from common.db.pool import Connection, Database
from tests.rows import add_application

OTHER = "other"
APPLICATION = "app"

# The definition that the kept column and the tallies stand for, in other words than the triggers'.
_TRUTH = """
    select d.domain from domains d where application_id = $1 and product = $2 and ($3::boolean is null or $3 = (
        departed_at is null and case product
            when 'power' then not exists (select from certificates c
                where c.domain = d.domain and released_at is null and not_after <= now())
            else exists (select from certificates c
                where c.domain = d.domain and released_at is null and live_at is not null and not_after > now()) end))
    order by created_at, domain
"""

_CHANGES = (
    "insert into domains (domain, product, application_id, created_at) select $1, 'power', 'app',"
    " now() - make_interval(secs => $2 * 7919) on conflict do nothing",
    "insert into domains (domain, product, application_id) select $1, 'secure', 'app' where $2 >= 0"
    " on conflict do nothing",
    "update domains set departed_at = now() where domain = $1 and $2 >= 0",
    "update domains set departed_at = null where domain = $1 and $2 >= 0",
    "update domains set application_id = case application_id when 'app' then 'other' else 'app' end"
    " where domain = $1 and $2 >= 0",
    "delete from domains where domain = $1 and product = case $2 % 2 when 0 then 'power' else 'secure' end",
    "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)"
    " values ($1, 'app', '', '', '', now(), now() + make_interval(hours => $2 % 3 - 1),"
    "  case $2 % 2 when 0 then now() end) on conflict (domain, application_id) do update set"
    " live_at = excluded.live_at, not_after = excluded.not_after, released_at = null",
    "update certificates set live_at = now() where domain = $1 and $2 >= 0",
    "update certificates set released_at = now() where domain = $1 and $2 >= 0",
    "delete from certificates where domain = $1 and $2 >= 0",
)


async def page(
    connection: Connection, product: Product, status: Status | None, offset: int, limit: int, most_skipped: int = 0
) -> DomainPage:
    return await domain_pages.list_page(
        connection, APPLICATION, product, status, offset=offset, limit=limit, most_skipped=most_skipped
    )


async def expect_truth(connection: Connection) -> None:
    for product in ("power", "secure"):
        for status, flag in ((None, None), ("active", True), ("inactive", False)):
            names = [row["domain"] for row in await connection.fetch(_TRUTH, APPLICATION, product, flag)]
            for offset, limit in ((0, 200), (1, 3), (len(names), 5)):
                listed = await page(connection, product, status, offset, limit)  # type: ignore[arg-type]
                assert [each.domain for each in listed.items] == names[offset : offset + limit]
                assert listed == await page(connection, product, status, offset, limit, most_skipped=2)  # type: ignore[arg-type]
                assert listed.total == len(names)
                assert all(status in (None, each.status) for each in listed.items)


@pytest.mark.parametrize("seed", range(3))
async def test_status_totals_and_pages_follow_every_change(database: Database, seed: int) -> None:
    random = Random(seed)
    async with database.connection() as connection:
        for application in (APPLICATION, OTHER):
            await add_application(connection, application)
        for number in range(120):
            change = random.choice(_CHANGES)
            await connection.execute(change, f"d{random.randrange(6)}.test", random.randrange(6))
            if number % 20 == 0:
                await expect_truth(connection)
        await expect_truth(connection)
        await connection.execute("delete from domains")
        assert await connection.fetchval("select count(*) from domain_tallies") == 0


async def add_lapsed(connection: Connection, count: int) -> None:
    """Add domains whose certificates have ended since anything was written."""
    await add_application(connection, APPLICATION)
    await connection.execute(
        "insert into domains (domain, product, application_id) select 'd' || n || '.test', 'power', 'app'"
        f" from generate_series(1, {count:d}) n"
    )
    await connection.execute("set session_replication_role = replica")  # no trigger: what time alone does
    await connection.execute(
        "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after)"
        " select domain, 'app', '', '', '', now(), now() - interval '1 second' from domains"
    )
    await connection.execute("update domains set active_until = now() - interval '1 second'")
    await connection.execute("set session_replication_role = default")


async def test_a_lapse_moves_a_domain_between_the_lists_without_a_write(database: Database) -> None:
    async with database.connection() as connection:
        await add_lapsed(connection, 2500)
        assert (await page(connection, "power", "active", 0, 5)).total == 0
        last = await page(connection, "power", "inactive", 2495, 10)
        assert (last.total, len(last.items)) == (2500, 5)
        assert {each.status for each in last.items} == {"inactive"}


async def test_a_deep_page_reads_no_more_than_the_first(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection, APPLICATION)
        await connection.execute("alter table domains disable trigger follow")  # the feed is not what is measured
        await connection.execute(
            "insert into domains (domain, product, application_id, created_at)"
            " select 'd' || n || '.test', 'power', 'app', now() - make_interval(secs => n * 120)"
            " from generate_series(1, 1500) n"
        )
        await connection.execute("update domains set departed_at = now() where hashtext(domain) % 3 = 0")
        await connection.execute("vacuum analyze domains, domain_tallies")
        for status in (None, True, False):
            assert await blocks_read(connection, status, 0) < 250
            assert await blocks_read(connection, status, 450) < 600, "a page far down the list"
        settled = await blocks_of(connection, "select settle_lapsed_domains($1, 1000)", APPLICATION)
        assert settled < 200, "nothing has lapsed: the list is not walked"


async def test_ten_years_of_domains_are_listed_from_few_tallies(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection, APPLICATION)
        await connection.execute("alter table domains disable trigger follow")  # the feed is not what is measured
        await connection.execute(
            "insert into domains (domain, product, application_id, created_at)"
            " select 'd' || n || '.test', 'power', 'app', now() - make_interval(days => n)"
            " from generate_series(1, 3650) n"
        )
        await connection.execute("vacuum analyze domains, domain_tallies")
    async with database.transaction() as connection:
        before = await tallies_read(connection)
        assert (await page(connection, "power", "active", 1800, 10)).total == 3650
        assert await tallies_read(connection) - before < 600
        before = await tallies_read(connection)
        assert (await page(connection, "power", "active", 1000, 10, most_skipped=1000)).total == 3650
        assert await tallies_read(connection) - before < 100, "the place is near the beginning"


async def tallies_read(connection: Connection) -> int:
    """In this transaction."""
    read = "select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'domain_tallies'"
    return int(await connection.fetchval(read))


async def blocks_read(connection: Connection, status: bool | None, offset: int) -> int:
    statement, values = domain_pages._PAGE_OF_ALL, [APPLICATION, "power", offset, 50, 0]
    if status is not None:
        statement, values = domain_pages._PAGE_OF_STATUS, [*values, status]
    return await blocks_of(connection, statement, *values)


async def blocks_of(connection: Connection, query: str, *values: Any) -> int:
    plan = await connection.fetchval(f"explain (analyze, buffers, format json) {query}", *values)
    content: Any = orjson.loads(plan) if isinstance(plan, str) else plan
    top = content[0]["Plan"]
    return int(top["Shared Hit Blocks"]) + int(top["Shared Read Blocks"])


_CERTIFICATE = (
    "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after, released_at)"
    " values ('shop.test', $1, '', '', '', now(), now() + interval '1 hour', $2::timestamptz)"
)


async def test_a_released_certificate_says_nothing_of_the_domain(database: Database) -> None:
    async with database.connection() as connection:
        await add_application(connection, APPLICATION)
        await connection.execute(
            "insert into domains (domain, product, application_id) values ('shop.test', 'power', 'app')"
        )
        row = "select xmin::text from domains"
        before = await connection.fetchval(row)
        released_at = await connection.fetchval("select now()")
        await connection.execute(_CERTIFICATE, OTHER, released_at)
        await connection.execute("update certificates set not_after = now() - interval '1 hour'")
        await connection.execute("delete from certificates")
        assert await connection.fetchval(row) == before
        await connection.execute(_CERTIFICATE, APPLICATION, None)
        await connection.execute("update certificates set released_at = now()")
        assert await connection.fetchval(row) != before


async def test_a_certificate_erased_after_its_domain_makes_no_statement_on_domains(database: Database) -> None:
    """Which would count its domains anew; of a name that is enrolled, there is one."""
    async with database.connection() as connection:
        await add_application(connection, APPLICATION)
        await connection.execute(
            "insert into domains (domain, product, application_id) select name, 'power', 'app'"
            " from unnest(array['kept.test', 'gone.test', 'released.test']) name"
        )
        await connection.execute(
            "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after)"
            " select domain, 'app', '', '', '', now(), now() + interval '1 day' from domains"
        )
        await connection.execute("delete from domains where domain <> 'kept.test'")
        await connection.execute(
            "create sequence statements; create function note() returns trigger language plpgsql as"
            " $$ begin perform nextval('statements'); return null; end $$;"
            " create trigger note after update on domains for each statement execute function note()"
        )
        await connection.execute("delete from certificates where domain = 'gone.test'")
        await connection.execute("update certificates set released_at = now() where domain = 'released.test'")
        assert not await connection.fetchval("select is_called from statements")
        await connection.execute("delete from certificates where domain = 'kept.test'")
        row = await connection.fetchrow("select last_value, is_called from statements")
        assert tuple(row or ()) == (1, True)


async def test_a_list_waits_for_no_other_transaction(database: Database) -> None:
    async with database.connection() as connection, database.transaction() as other:
        await add_lapsed(connection, 20)
        await other.execute("select from domains where domain = 'd7.test' for update")
        assert (await page(connection, "power", "inactive", 0, 50)).total == 19
        await connection.execute("update domains set active_until = null where domain = 'd8.test'")
        await other.execute("select from domain_tallies for update")
        assert len((await page(connection, "power", None, 0, 50)).items) == 20
