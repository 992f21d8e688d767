"""A million monitored domains as they would be after years of service, written straight into Postgres.

Three in five came in bulk, three hundred a second; the others one by one over two years. Each has four records, its
last check's verdicts and evidence. One in ten is overdue, as after an outage, the others fall due over the next hour,
and one in five was checked since the table was last vacuumed.
"""

from __future__ import annotations

from collections.abc import Iterator

import asyncpg

_CHUNK = 50_000
_SECONDS = 600.0

_INSERT = """
    insert into monitored_domains (id, application_id, domain, user_id, date_added, dns_records, state,
        records_present, records_missing, last_checked_at, evidence)
    select 'mon_' || left(md5(n::text), 24), $1, 'd' || lpad(n::text, 7, '0') || '.example', 'user-' || n, added,
        records, 'present', records, '[]', checked, evidence
    from generate_series($2::int, $3::int) n
    cross join lateral (select
        case when n % 5 < 3 then now() - interval '30 days' + n * interval '3.3 milliseconds'
            else now() - interval '730 days' + n * (interval '730 days' / $4::int) end as added,
        now() - interval '1 hour' * random() as checked,
        jsonb_build_array(
            jsonb_build_object('type', 'A', 'host', '@', 'value', '192.0.2.10', 'ttl', 3600),
            jsonb_build_object('type', 'CNAME', 'host', 'www', 'value', 'apps.partner.example', 'ttl', 3600),
            jsonb_build_object('type', 'TXT', 'host', '@', 'value', 'site-verification=' || md5(n::text), 'ttl', 300),
            jsonb_build_object('type', 'MX', 'host', '@', 'value', 'mail.partner.example', 'ttl', 3600,
                'priority', '10')) as records
    ) of_each
    cross join lateral (select jsonb_agg(jsonb_build_object('record', record, 'verdict', 'present', 'answers',
        jsonb_build_array(jsonb_build_object('server', '192.0.2.53:53', 'at', checked, 'values', record->'value'))))
        as evidence from jsonb_array_elements(records) record) of_check
"""

_SCHEDULE = """
    insert into checks (id, application_id, requested_at, due_at, rechecked_at)
    select id, application_id, null, case when random() < 0.1 then now() - interval '10 minutes' * random()
        else now() + interval '1 hour' * random() end, last_checked_at
    from monitored_domains
"""

_CHECKED_SINCE = """
    with checked as (
        update monitored_domains set last_checked_at = now() where substring(id, 5, 1) in ('3', '7', 'b') returning id
    )
    update checks set rechecked_at = now(), due_at = due_at - interval '1 second' * random()
    where id in (select id from checked)
"""


async def write(dsn: str, application_id: str, count: int, track: Iterator[int]) -> None:
    """Write the domains; `track` yields the number of each chunk to be written, and draws the progress (`chunks`)."""
    connection = await asyncpg.connect(dsn)
    try:
        for number in track:
            last = min(count, (number + 1) * _CHUNK)
            await connection.execute(_INSERT, application_id, number * _CHUNK + 1, last, count, timeout=_SECONDS)
        await connection.execute("truncate checks", timeout=_SECONDS)  # each is due at once
        await connection.execute(_SCHEDULE, timeout=_SECONDS)
        await connection.execute("vacuum (analyze) monitored_domains, monitored_tallies, checks", timeout=_SECONDS)
        await connection.execute(_CHECKED_SINCE, timeout=_SECONDS)
        await connection.execute("checkpoint", timeout=_SECONDS)  # writing all this is not what is measured
    finally:
        await connection.close()


async def postpone_checks(dsn: str) -> None:
    """Postpone all checks, so that none falls due for a day."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            "update checks set due_at = now() + interval '1 day', lease_until = null"
            " where due_at < now() + interval '2 hours'",
            timeout=_SECONDS,
        )
        await connection.execute("vacuum (analyze) checks", timeout=_SECONDS)
    finally:
        await connection.close()


def chunks(count: int) -> range:
    """Return the numbers of the steps in which `write` writes."""
    return range(-(-count // _CHUNK))
