"""The list of all products' domains: every page in order, searched, filtered, and never another application's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from common.db import domain_list, domain_totals
from common.db.domain_list import ListRow
from common.db.domain_list_query import SORTS, STATUSES, DomainListQuery, SearchLimits, Sort
from common.db.pool import Connection, Database

NAMES = 30


@pytest.fixture
async def filled(database: Database) -> Database:
    async with database.transaction() as connection:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            " select id, id, id || '.p.test', '', '' from unnest(array['a', 'b']) id"
        )
        await connection.execute(
            "insert into domains (domain, product, application_id, application_url, created_at)"
            " select 'shop' || lpad((n * 7 % 30)::text, 2, '0') || '.x.test', product,"
            " case when n % 3 = 0 then 'b' else 'a' end, 'http://o', now() - n * interval '1 hour'"
            " from generate_series(0, $1 - 1) n, unnest(array['power', 'secure']) product",
            NAMES,
        )
        await connection.execute(
            "insert into monitored_domains (id, application_id, domain, subdomain, dns_records, state, date_added)"
            " select application || n, application, 'm' || n || '.test', case when n % 2 = 0 then 'www' end, '[]',"
            " case when n % 5 = 0 then 'missing' else 'present' end, now() - n * interval '1 hour'"
            " from generate_series(0, $1 - 1) n, unnest(array['a', 'b']) application",
            NAMES,
        )
        await connection.execute(
            "insert into certificates"
            " (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)"
            " select distinct on (domain) domain, application_id, 'ca', '', '', now(),"
            " now() + (hashtext(domain) % 50) * interval '1 day', now() from domains where hashtext(domain) % 4 > -2"
        )
        await connection.execute("update domains set departed_at = now() where hashtext(domain) % 5 = 0")
    return database


def identity(row: ListRow) -> tuple[str, ...]:
    return row.name, row.product, row.application_id, row.status


async def walk(database: Database, wanted: DomainListQuery) -> list[ListRow]:
    """Every part to the end."""
    found: list[ListRow] = []
    while True:
        async with database.connection() as connection:
            part = await domain_list.list_part(connection, wanted)
        found += part.rows
        if part.next is None:
            return found
        wanted = replace(wanted, after=part.next)


def ordered(rows: list[ListRow], sort: Sort) -> list[ListRow]:
    by_name = sorted(rows, key=lambda row: (row.name, row.product, row.application_id))
    if sort in ("added", "-added"):
        by_name.sort(key=lambda row: row.added_at)
    if sort in ("expiry", "-expiry"):
        by_name.sort(key=lambda row: _comparable(row.key.lapses_at))
    if sort in ("status", "-status"):
        by_name.sort(key=lambda row: row.status not in ("inactive", "missing"))
    return [*reversed(by_name)] if sort.startswith("-") else by_name


def _comparable(moment: datetime) -> datetime:
    """The infinities have no time zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("applications", [None, ["a"], ["a", "b"]], ids=str)
async def test_pages_hold_every_name_once_and_in_order(
    filled: Database, sort: Sort, applications: list[str] | None
) -> None:
    found = await walk(filled, DomainListQuery(applications, sort=sort, limit=7))
    everything = await walk(filled, DomainListQuery(applications, limit=1000))
    assert len({identity(row) for row in found}) == len(found) == len(everything)
    assert sorted(map(identity, found)) == sorted(map(identity, everything))
    assert [row.key.name for row in found] == [row.key.name for row in ordered(everything, sort)]
    assert [row.product for row in found] == [row.product for row in ordered(everything, sort)]


async def test_an_application_sees_its_own_names_only(filled: Database) -> None:
    for wanted in (
        DomainListQuery(["b"]),
        DomainListQuery(["b"], text="x.test"),
        DomainListQuery(["b"], status="problem", sort="-added"),
    ):
        found = await walk(filled, replace(wanted, limit=9))
        assert found
        assert {row.application_id for row in found} == {"b"}
    assert await walk(filled, DomainListQuery([])) == []


async def test_a_status_narrows_every_order(filled: Database) -> None:
    words = {"active": ("active", "present"), "problem": ("inactive", "missing")}
    for sort in SORTS:
        everything = await walk(filled, DomainListQuery(["a"], sort=sort, limit=1000))
        for status in STATUSES:
            found = await walk(filled, DomainListQuery(["a"], status=status, sort=sort, limit=8))
            assert list(map(identity, found)) == [identity(row) for row in everything if row.status in words[status]]


async def test_a_search_goes_on_where_its_walk_ended(filled: Database) -> None:
    """Parts of a few names, or of none, and each name that fits once; no index finds one character."""
    few = SearchLimits(window=40, walked=40)
    for applications in (["a"], ["a", "b"], None):
        for sort in SORTS:
            everything = await walk(filled, DomainListQuery(applications, sort=sort, limit=1000))
            found = await walk(filled, DomainListQuery(applications, text="1", sort=sort, limit=3, limits=few))
            assert list(map(identity, found)) == [identity(row) for row in everything if "1" in row.name]


@pytest.mark.parametrize("fewest", [1, 3])
async def test_a_search_of_several_applications_misses_no_name_where_one_has_most(
    filled: Database, fewest: int
) -> None:
    """Each walk ends before names that were not read, whichever application has them."""
    few = SearchLimits(window=8, walked=8, fewest_own=fewest)
    partner = ["a", "b", "c", "d", "e"]
    async with filled.transaction() as connection:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            " select id, id, id || '.p.test', '', '' from unnest(array['c', 'd', 'e']) id"
        )
        await connection.execute(
            "update domains set application_id = case when hashtext(domain) % 7 = 0 then 'c'"
            " when hashtext(domain) % 7 = 1 then 'd' else application_id end"
        )
    for sort in SORTS:
        for status in (None, *STATUSES):
            everything = await walk(filled, DomainListQuery(partner, status=status, sort=sort, limit=1000))
            found = await walk(
                filled, DomainListQuery(partner, text="1", status=status, sort=sort, limit=3, limits=few)
            )
            assert list(map(identity, found)) == [identity(row) for row in everything if "1" in row.name]


class SlowIndex:
    """A connection on which what reads the index of name parts takes ten minutes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.slept = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def fetch(self, statement: str, *values: Any) -> Any:
        if "name_grams" not in statement:
            return await self._connection.fetch(statement, *values)
        self.slept += 1
        return await self._connection.fetch("select pg_sleep(600)")


async def test_a_search_by_index_that_takes_long_is_given_up(filled: Database) -> None:
    wanted = DomainListQuery(["a"], text="shop0", limit=100, limits=SearchLimits(window=3, walked=199))
    expected = await walk(filled, replace(wanted, limits=SearchLimits()))
    assert len(expected) == 12
    async with filled.connection() as connection:
        slow = SlowIndex(connection)
        part = await domain_list.list_part(cast("Connection", slow), wanted)
    assert slow.slept == 1
    assert part.rows == expected


@pytest.mark.parametrize("window", [2_000, 3], ids=["walked", "by index"])
@pytest.mark.parametrize(
    ("text", "count"),
    [("shop0", 20), ("07.x", 2), ("op", 60), ("hop", 60), ("ww", 30), ("%", 0), ("_", 0), ("m1.t", 2)],
)
async def test_a_part_of_a_name_is_found(filled: Database, text: str, count: int, window: int) -> None:
    """What is searched for is no pattern."""
    found = await walk(filled, DomainListQuery(None, text=text, limit=100, limits=SearchLimits(window=window)))
    assert len(found) == count
    assert all(text in row.name for row in found)


async def test_status_and_product_narrow_the_list(filled: Database) -> None:
    missing = await walk(filled, DomainListQuery(["a"], product="monitor", status="problem"))
    assert {row.status for row in missing} == {"missing"}
    assert len(missing) == 6
    secure = await walk(filled, DomainListQuery(None, product="secure", limit=1000))
    assert {row.product for row in secure} == {"secure"}
    assert len(secure) == NAMES


@pytest.mark.parametrize("applications", [None, ["a"], ["a", "b"]], ids=str)
async def test_totals_are_those_of_the_list(filled: Database, applications: list[str] | None) -> None:
    async with filled.connection() as connection:
        totals = await domain_totals.count_domains(connection, applications)
    rows = await walk(filled, DomainListQuery(applications, limit=1000))
    assert totals.active + totals.inactive == sum(row.product != "monitor" for row in rows)
    assert totals.monitored == sum(row.product == "monitor" for row in rows)
    assert totals.missing == sum(row.status == "missing" for row in rows)
