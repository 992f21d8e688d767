"""How many domains some applications have, or all. Owns no table."""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.db.session import Connection


@dataclass(frozen=True, slots=True)
class Totals:
    """The numbers of names that some applications have, by product and status."""

    active: int
    inactive: int
    monitored: int
    missing: int


_MOST_COUNTED = 100_000
_MOST_PROBLEMS = 10_000

# Both products are named, so that the tallies' key finds the longest span of each application.
_COUNT_OWN = """
    with enrolled as materialized (
        select is_active, sum(domains)::bigint as domains from domain_tallies
        where application_id = any($1) and product in ('power', 'secure') and span = (domain_spans())[1]
        group by is_active
    )
    select coalesce((select domains from enrolled where is_active), 0) as active,
        coalesce((select domains from enrolled where not is_active), 0) as inactive,
        (select coalesce(sum(domains), 0)::bigint from monitored_tallies
            where application_id = any($1) and span = 'day') as monitored,
        (select count(*) from (select from monitored_domains where application_id = any($1) and state = 'missing'
            limit $2) m) as missing
"""
_ALL_OF = """
    (select case when count(*) < $1 then count(*) else greatest(count(*), (select reltuples::bigint from pg_class
        where oid = '{table}'::regclass)) end from (select from {table} limit $1) counted)"""
_COUNT_ALL = f"""
    with problems as materialized (
        select (select count(*) from (select from domains where is_active = false limit $2) d) as inactive,
            (select count(*) from (select from monitored_domains where state = 'missing' limit $2) m) as missing
    )
    select {_ALL_OF.format(table="domains")} - inactive as active, inactive,
        {_ALL_OF.format(table="monitored_domains")} as monitored, missing from problems
"""


async def count_domains(connection: Connection, applications: Sequence[str] | None) -> Totals:
    """Count the applications' names, or all (None).

    Those of some applications are summed from the tallies that the tables keep; all are counted up to `_MOST_COUNTED`,
    beyond which Postgres' estimate stands. Missing names are counted up to `_MOST_PROBLEMS`; of all, so are inactive
    ones.
    """
    if applications is None:
        row = await connection.fetchrow(_COUNT_ALL, _MOST_COUNTED, _MOST_PROBLEMS)
    else:
        row = await connection.fetchrow(_COUNT_OWN, list(applications), _MOST_PROBLEMS)
    assert row is not None, "a select without a table has one row"
    return Totals(**row)
