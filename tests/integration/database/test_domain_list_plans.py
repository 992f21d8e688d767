"""A part of a list of domains reads about as many rows as it shows, whatever the order, the filter and the place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import orjson
import pytest

from bench.blocks import count_blocks
from common.db import domain_list, unwell_domains
from common.db.domain_list_query import SORTS, STATUSES, DomainListQuery, SearchLimits
from common.db.pool import Connection, Database
from tests.query_plans import nodes

ROWS = 8_000
LIMIT = 20
_ROWS = """
    insert into domains (domain, product, application_id, application_url, created_at, departed_at, active_until,
        is_active)
    select md5(n::text) || '.test', product, case n % 4 when 0 then 'p' || n / 4 % 256 else 'a' end, '',
        now() - n * interval '1 hour', case when n % 50 = 1 then now() end,
        case when n % 50 = 1 then '-infinity' else now() + (1 + n / 2000) * interval '1 day' end, n % 50 <> 1
    from generate_series(1, $1) n, unnest(array['power', 'secure']) product
"""
_MONITORED = """
    insert into monitored_domains (id, application_id, domain, dns_records, state, date_added)
    select n, case n % 4 when 0 then 'p' || n / 4 % 256 else 'a' end, md5(n::text) || '.test', '[]',
        case n % 50 when 1 then 'missing' else 'present' end, now() - n * interval '1 hour'
    from generate_series(1, $1) n
"""

_MONITORED_OF_PARTNER = """
    insert into monitored_domains (id, application_id, domain, dns_records, state)
    select n, 'p' || case when n % 6 = 0 then 0 else n % $1 end, md5(n::text) || '.test', '[]', 'present'
    from generate_series(1, 12000) n
"""


class Explained:
    """A connection that keeps the plan of each query."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.plans: list[dict[str, Any]] = []

    async def fetch(self, query: str, *values: Any) -> list[Any]:
        plan = await self._connection.fetchval(f"explain (analyze, format json) {query}", *values)
        self.plans.append((orjson.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])
        return await self._connection.fetch(query, *values)


class KeptPlans:
    """A connection that keeps the plan of each query for any values, and finds nothing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.transaction, self.execute = connection.transaction, connection.execute
        self.plans: list[dict[str, Any]] = []

    async def fetch(self, query: str, *values: Any) -> list[Any]:
        await self._connection.execute(f"prepare kept as {query}")
        plan = await self._connection.fetchval(
            f"explain (format json) execute kept ({', '.join('null' for _ in values)})"
        )
        await self._connection.execute("deallocate kept")
        self.plans.append((orjson.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])
        return [{"most_held": 0, "name": None}] if "most_held" in query else []


def rows_read(plan: dict[str, Any]) -> float:
    """Of both tables, with those that a filter dropped."""
    return sum(
        float((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in nodes(plan)
        if node.get("Relation Name") in ("domains", "monitored_domains")
    )


@pytest.fixture
async def filled(database: Database) -> Database:
    async with database.connection() as connection:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            " select id, id, id || '.p.test', '', ''"
            " from (select 'a' as id union all select 'p' || n from generate_series(0, 255) n) named"
        )
        await connection.execute("set session_replication_role = replica")  # the triggers are not what is measured
        await connection.execute(_ROWS, ROWS)
        await connection.execute(_MONITORED, ROWS)
        await connection.execute("vacuum analyze domains, monitored_domains, applications")
        await connection.execute("reset session_replication_role")
    return database


async def test_a_part_reads_no_more_than_it_shows(filled: Database) -> None:
    """One test, since its rows take longer to write than all of it to read."""
    await expect_few_rows_of_each_list(filled)
    await expect_walks_of_the_index_alone(filled)
    await expect_one_walk_for_half_a_part(filled)
    await expect_few_blocks_of_many_applications(filled)
    await expect_few_of_a_kind_to_be_found_among_many(filled)


async def test_few_orders_are_read_to_find_those_that_fail(filled: Database) -> None:
    """Among thousands that wait for their renewal; whoever asks, and whatever the values."""
    async with filled.connection() as connection:
        await connection.execute("set session_replication_role = replica")
        await connection.execute(
            "insert into orders (domain, application_id, state, kind, hold_until, due_at)"
            " select distinct on (domain) domain, application_id, 'issued', 'renewal', now(), now() from domains"
        )
        await connection.execute(
            "update orders set state = 'failed', kind = 'new' where domain in"
            " (select domain from domains where application_id = 'a' and active_until > now() limit 5)"
        )
        await connection.execute("vacuum analyze orders")
        await connection.execute("reset session_replication_role")
        for applications in (["a"], [f"p{number}" for number in range(250)], None):
            for seen in (Explained(connection), KeptPlans(connection)):
                as_connection = cast("Connection", seen)
                await unwell_domains.list_uncertified(as_connection, applications, most=LIMIT)
                whole = [node for node in nodes(seen.plans[0]) if node["Node Type"] == "Seq Scan"]
                assert [node["Relation Name"] for node in whole if node["Relation Name"] != "applications"] == []


async def expect_few_rows_of_each_list(filled: Database) -> None:
    async with filled.connection() as connection:
        for applications in (["a"], None):
            for product in (None,) if applications else (None, "secure"):
                for status in (None, *STATUSES):
                    for sort in ("name", "-added", "expiry", "-expiry", "status"):
                        wanted = DomainListQuery(applications, "", product, status, sort, limit=LIMIT)
                        await expect_few_rows(connection, wanted)


async def expect_few_of_a_kind_to_be_found_among_many(filled: Database) -> None:
    """Operators' lists: no domain in Secure, and no name that is missing or unchecked."""
    async with filled.connection() as connection:
        await connection.execute("set session_replication_role = replica")
        await connection.execute("delete from domains where product = 'secure'")
        await connection.execute("delete from monitored_domains where state <> 'present'")
        await connection.execute("vacuum analyze domains, monitored_domains")
        await connection.execute("reset session_replication_role")
        for product in (None, "secure", "monitor"):
            for sort in ("name", "-added", "expiry", "status"):
                for status in (None, "problem"):
                    await expect_few_rows(connection, DomainListQuery(None, "", product, status, sort, limit=LIMIT))


async def expect_walks_of_the_index_alone(filled: Database) -> None:
    """A search walks two thousand names of each branch, and not their rows."""
    blocks: list[int] = []
    for applications in (["a"], None):
        for sort in ("name", "-added", "expiry", "status"):
            wanted = DomainListQuery(applications, "absent", None, None, sort, limit=LIMIT)
            async with filled.transaction() as connection, count_blocks(connection, blocks):
                assert (await domain_list.list_part(connection, wanted)).rows == []
    assert max(blocks) <= 600, blocks


async def expect_one_walk_for_half_a_part(filled: Database) -> None:
    """Of 2,000 names 15 hold the text: a whole part would take a second walk, from the beginning."""
    async with filled.connection() as connection:
        explained = Explained(connection)
        wanted = DomainListQuery(["a"], "abc", "power", limit=LIMIT)
        part = await domain_list.list_part(cast("Connection", explained), wanted)
    assert len(explained.plans) == 1
    assert LIMIT / 2 <= len(part.rows) < LIMIT
    assert part.next is not None


async def expect_few_blocks_of_many_applications(filled: Database) -> None:
    """A partner's are found in the list of all applications, rather than in one of each of its applications."""
    partner = [f"p{number}" for number in range(128)]
    blocks = {}
    for sort in SORTS:
        for status in (None, *STATUSES):
            wanted, counts = DomainListQuery(partner, "", None, status, sort, limit=LIMIT), list[int]()
            for _ in range(2):  # parts
                async with filled.transaction() as connection, count_blocks(connection, counts):
                    part = await domain_list.list_part(connection, wanted)
                assert {row.application_id for row in part.rows} <= {*partner}
                wanted = replace(wanted, after=part.next)
            blocks[sort, status] = max(counts)
    assert max(blocks.values()) <= 500, blocks


async def test_a_search_of_many_applications_reads_few_names_of_each(filled: Database) -> None:
    """A hundred of a partner's applications have 100 names each; the one with 2,000 does not end the walk soon."""
    partner = [f"p{number}" for number in range(101)]
    async with filled.connection() as connection:
        await connection.execute("set session_replication_role = replica")
        await connection.execute("delete from monitored_domains")
        await connection.execute(_MONITORED_OF_PARTNER, 101)
        await connection.execute("vacuum analyze monitored_domains")
        explained = Explained(connection)
        limits = SearchLimits(window=500, walked=1_000)
        wanted = DomainListQuery(partner, "ab", "monitor", limit=200, limits=limits)  # no index finds two characters
        part = await domain_list.list_part(cast("Connection", explained), wanted)
        everything = await domain_list.list_part(connection, replace(wanted, text="", limit=12_000))
    (plan,) = explained.plans  # a longer walk would read the same
    assert rows_read(plan) <= 2 * 10 * 101 + 200
    assert part.next is not None
    walked = [row.name for row in everything.rows if row.name <= part.next.name]
    assert len(walked) >= 300
    assert [row.name for row in part.rows] == [name for name in walked if "ab" in name]


async def test_a_plan_that_is_kept_compares_no_name_with_each_application(database: Database) -> None:
    """A session's later executions: of 10,000 names and 1,000 applications that were ten million comparisons."""
    partner = [f"p{number}" for number in range(20)]
    async with database.connection() as connection:
        await connection.execute("set plan_cache_mode = force_generic_plan")
        kept = KeptPlans(connection)
        for status in (None, *STATUSES):
            await domain_list.list_part(
                cast("Connection", kept), DomainListQuery(partner, status=status, sort="-added")
            )
        await domain_list._find(cast("Connection", kept), DomainListQuery(partner, "shop"))
    assert len(kept.plans) == 4
    filters = [node["Filter"] for plan in kept.plans for node in nodes(plan) if "Filter" in node]
    assert any("hashed SubPlan" in each for each in filters), filters
    assert not [each for each in filters if "= ANY" in each]


async def expect_few_rows(connection: Connection, wanted: DomainListQuery) -> None:
    """Also in the middle of names that lapse at one moment."""
    part = await domain_list.list_part(connection, replace(wanted, limit=500))
    explained = Explained(connection)
    await domain_list.list_part(cast("Connection", explained), replace(wanted, after=part.next))
    for plan in explained.plans:  # none where nothing can follow
        # Each branch's next rows and each row's details.
        assert rows_read(plan) <= LIMIT * 12, (wanted, rows_read(plan))
        scanned = {node.get("Relation Name") for node in nodes(plan) if node["Node Type"] == "Seq Scan"}
        assert not scanned & {"domains", "monitored_domains"}, wanted
