"""The list of all products' domains: every page in order, searched, filtered, and never another application's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.db import domain_list
from common.db.domain_list import SORTS, Row, Sort, Wanted
from common.db.pool import Database

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
    return database


async def walk(database: Database, wanted: Wanted) -> list[Row]:
    """Every page to the end."""
    found: list[Row] = []
    while True:
        async with database.connection() as connection:
            page = await domain_list.list_page(connection, wanted)
        found += page
        if len(page) < wanted.limit:
            return found
        wanted = replace(wanted, after=page[-1].key)


def ordered(rows: list[Row], sort: Sort) -> list[Row]:
    by_name = sorted(rows, key=lambda row: (row.name, row.product, row.application_id))
    if sort in ("added", "-added"):
        by_name.sort(key=lambda row: row.added_at)
    return by_name if sort in ("name", "added") else [*reversed(by_name)]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("applications", [None, ["a"], ["a", "b"]], ids=str)
async def test_pages_hold_every_name_once_and_in_order(
    filled: Database, sort: Sort, applications: list[str] | None
) -> None:
    found = await walk(filled, Wanted(applications, sort=sort, limit=7))
    everything = await walk(filled, Wanted(applications, limit=1000))
    assert len({row.key for row in found}) == len(found) == len(everything)
    assert sorted(map(str, found)) == sorted(map(str, everything))
    if sort in ("name", "-name"):
        assert found == ordered(everything, sort)
    else:
        times = [row.added_at for row in found]
        assert times == sorted(times, reverse=sort == "-added")


async def test_an_application_sees_its_own_names_only(filled: Database) -> None:
    for wanted in (Wanted(["b"]), Wanted(["b"], text="x.test"), Wanted(["b"], status="problem", sort="-added")):
        found = await walk(filled, replace(wanted, limit=9))
        assert found
        assert {row.application_id for row in found} == {"b"}
    assert await walk(filled, Wanted([])) == []


@pytest.mark.parametrize("window", [2_000, 3], ids=["walked", "by index"])
@pytest.mark.parametrize(
    ("text", "count"),
    [("shop0", 20), ("07.x", 2), ("sh", 60), ("hop", 60), ("ww", 30), ("%", 0), ("_", 0), ("m1.t", 2)],
)
async def test_a_part_of_a_name_is_found(
    filled: Database, monkeypatch: pytest.MonkeyPatch, text: str, count: int, window: int
) -> None:
    """Two characters are the beginning of a name. What is searched for is no pattern."""
    monkeypatch.setattr(domain_list, "_WINDOW", window)
    found = await walk(filled, Wanted(None, text=text, limit=100))
    assert len(found) == count
    assert all(text in row.name for row in found)


async def test_status_and_product_narrow_the_list(filled: Database) -> None:
    missing = await walk(filled, Wanted(["a"], product="monitor", status="problem"))
    assert {row.status for row in missing} == {"missing"}
    assert len(missing) == 6
    secure = await walk(filled, Wanted(None, product="secure", limit=1000))
    assert {row.product for row in secure} == {"secure"}
    assert len(secure) == NAMES


async def test_totals_are_those_of_the_list(filled: Database) -> None:
    async with filled.connection() as connection:
        totals = await domain_list.count_domains(connection, ["a"])
    rows = await walk(filled, Wanted(["a"], limit=1000))
    assert totals.active + totals.inactive == sum(row.product != "monitor" for row in rows)
    assert totals.monitored == sum(row.product == "monitor" for row in rows)
    assert totals.missing == sum(row.status == "missing" for row in rows)
