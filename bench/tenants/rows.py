"""Domains of two applications as after years of service, written straight into Postgres.

Three in five came in bulk, three hundred a second; the others one by one over two years. One in three has left. The
triggers are off meanwhile, so the status and its tallies are written as well; the change feed is not.
"""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg

_CHUNK = 50_000
_SECONDS = 900.0

_DOMAINS = """
    insert into domains (domain, product, application_id, application_url, created_at, departed_at, active_until,
        is_active)
    select 'd' || n || '.' || $1 || '.example', 'power', $1, 'https://origin.example', added,
        case when n % 3 = 0 then now() end, case when n % 3 = 0 then '-infinity' else now() + interval '60 days' end,
        n % 3 > 0
    from generate_series($2::int, $3::int) n
    cross join lateral (select case
        when n % 5 < 3 then now() - interval '30 days' + n * interval '3.3 milliseconds'
        else now() - interval '730 days' + n * (interval '730 days' / $4::int) end as added) of_each
"""

_CERTIFICATES = """
    insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)
    select 'd' || n || '.' || $1 || '.example', $1, 'bench', '', '', now(), now() + interval '60 days', now()
    from generate_series($2::int, $3::int) n where n % 3 > 0
"""

# As the triggers count: `count_domains`.
_TALLIES = """
    insert into domain_tallies (application_id, product, span, begins_at, is_active, slot, domains)
    select application_id, product, span, domain_span(span, created_at), is_active, domain_slot(domain), count(*)
    from domains, unnest(domain_spans()) span group by 1, 2, 3, 4, 5, 6
"""


def chunks(count: int) -> range:
    """Return the numbers of the steps in which `write` writes the offender's domains."""
    return range(-(-count // _CHUNK))


async def write(dsn: str, offender: str, neighbour: str, count: int, few: int, track: Iterator[int]) -> None:
    """Write `count` domains of the one application, `few` of the other.

    `track` yields the numbers of `chunks` and draws the progress.
    """
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("set session_replication_role = replica")
        for number in track:
            last = min(count, (number + 1) * _CHUNK)
            await _write(connection, offender, number * _CHUNK + 1, last, count)
        await _write(connection, neighbour, 1, few, few)
        await connection.execute(_TALLIES, timeout=_SECONDS)
        await connection.execute("vacuum (analyze)", timeout=_SECONDS)
        await connection.execute("checkpoint", timeout=_SECONDS)  # writing all this is not what is measured
    finally:
        await connection.close()


async def _write(
    connection: asyncpg.Connection[asyncpg.Record], application_id: str, first: int, last: int, count: int
) -> None:
    await connection.execute(_DOMAINS, application_id, first, last, count, timeout=_SECONDS)
    await connection.execute(_CERTIFICATES, application_id, first, last, timeout=_SECONDS)
