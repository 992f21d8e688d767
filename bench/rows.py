"""Rows of years of service, written straight into Postgres: many of each table, nothing of it due.

For benches that compare a full database with an empty one. The rows are well-formed and small, and shared by
`APPLICATIONS` applications; what edges would read of them (certificates, keys) is not real. Triggers are off meanwhile,
so the change feed is written as well. Ten million of each take about 40 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.bulk import bulk_load

APPLICATIONS = 20_000
_CHUNK = 500_000

_APPLICATIONS = """
    insert into applications (id, name, cname_target, client_secret, webhook_secret, webhook_url)
    select 'bench-' || n, 'bench', 'bench-' || n || '.example', '', '', 'http://127.0.0.1:9/'
    from generate_series(0, $1::int - 1) n
"""
_ENDPOINTS = """
    insert into webhook_endpoints (application_id, answered_at) select id, now() from applications
    on conflict do nothing
"""

# Each takes the numbers of its first and last row, and how many applications there are.
_TABLES = {
    "domains": """
        insert into domains (domain, product, application_id, application_url)
        select 'd' || n || '.example', 'power', 'bench-' || n % $3::int, 'https://origin.example'
        from generate_series($1::int, $2::int) n""",
    "certificates": """
        insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)
        select 'd' || n || '.example', 'bench-' || n % $3::int, 'bench', '', '', now(), now() + interval '90 days',
            now()
        from generate_series($1::int, $2::int) n""",
    "orders": """
        insert into orders (domain, application_id, state, kind, hold_until, due_at, renew_at, finished_at)
        select 'd' || n || '.example', 'bench-' || n % $3::int, 'issued', 'renewal', now(),
            now() + interval '1 hour' + random() * interval '1 day', now() + random() * interval '60 days', now()
        from generate_series($1::int, $2::int) n""",
    "changes": """
        insert into changes (kind, key, version, deleted, digest)
        select 'route', 'power/d' || n || '.example', 1000000 + n, false, n
        from generate_series($1::int, $2::int) n where $3::int > 0""",
    "enrolments": """
        insert into enrolments (domain, product, application_id, enrolled_at)
        select 'd' || n || '.example', 'power', 'bench-' || n % $3::int, now() - random() * interval '30 days'
        from generate_series($1::int, $2::int) n""",
    "events": """
        insert into events (id, application_id, type, domain, sequence, fields, created_at)
        select 'evt_' || lpad(to_hex(n), 34, '0'), 'bench-' || n % $3::int, 'domain.power', 'd' || n || '.example', 1,
            '{}', now() - random() * interval '29 days'
        from generate_series($1::int, $2::int) n""",
    "deliveries": """
        insert into deliveries (event_id, application_id, status, settled_at)
        select 'evt_' || lpad(to_hex(n), 34, '0'), 'bench-' || n % $3::int, 'delivered', now()
        from generate_series($1::int, $2::int) n""",
    "monitored_domains": """
        insert into monitored_domains (id, application_id, domain, dns_records, state)
        select 'mon_' || n, 'bench-' || n % $3::int, 'd' || n || '.example', '[]', 'present'
        from generate_series($1::int, $2::int) n""",
    "checks": """
        insert into checks (id, application_id, requested_at, due_at)
        select 'mon_' || n, 'bench-' || n % $3::int, null, now() + interval '1 hour' * (1 + random())
        from generate_series($1::int, $2::int) n""",
    "batches": """
        insert into batches (id, application_id, kind, submitted_at, due_at)
        select 'bat_' || n, 'bench-' || n % $3::int, 'create', now() - random() * interval '6 days', null
        from generate_series($1::int, $2::int) n""",
    "revocations": """
        insert into revocations (domain, application_id, issuer, chain, reason, revoked_at)
        select 'd' || n || '.example', 'bench-' || n % $3::int, 'bench', '', 4, now() - random() * interval '80 days'
        from generate_series($1::int, $2::int) n""",
    "shares": """
        insert into shares (id, application_id, domain, records, expires_at)
        select lpad(n::text, 32, '0'), 'bench-' || n % $3::int, 'd' || n || '.example', '[]',
            now() + random() * interval '30 days'
        from generate_series($1::int, $2::int) n""",
}


def chunks(count: int) -> range:
    """The numbers of the steps in which `fill` writes."""
    return range(len(_TABLES) * -(-count // _CHUNK))


async def fill(dsn: str, count: int, track: Iterator[int], progress: Callable[[str], None]) -> None:
    """Write `count` rows of each table. `track` yields the numbers of `chunks` and draws how far it is; `progress` is
    called with what is done after that."""
    applications = min(APPLICATIONS, count)
    async with bulk_load(dsn, progress) as connection:
        await connection.execute(_APPLICATIONS, applications)
        await connection.execute(_ENDPOINTS)
        steps = -(-count // _CHUNK)
        for number in track:
            statement = list(_TABLES.values())[number // steps]
            first = number % steps * _CHUNK
            await connection.execute(statement, first + 1, min(count, first + _CHUNK), applications)
        await connection.execute("update feed_shards set version = version + 1000000 + $1 where shard = 0", count)
