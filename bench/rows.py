"""Rows of years of service, written straight into Postgres: many of each table, nothing of it due for a day.

For benches that compare a full database with an empty one. The rows are well-formed and small. Half of each table
belongs to one application (`LARGE`), the rest is shared by `APPLICATIONS` others, of which `PARTNERS` belong to one
organisation (`ORGANISATION`); what edges would read of the rows (certificates, keys) is not real. Triggers are off
meanwhile, so the change feed, the status of domains and the tallies are written as well. Ten million of each take about
60 GB; a bench names the tables that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from bench.bulk import bulk_load

LARGE = "bench-0"
ORGANISATION = "org_bench"
APPLICATIONS = 20_000
PARTNERS = 1_000
_CHUNK = 500_000

_ORGANISATIONS = f"insert into organisations (id, name) values ('{ORGANISATION}', 'bench')"
_APPLICATIONS = f"""
    insert into applications (id, name, cname_target, client_secret, webhook_secret, webhook_url, organisation_id)
    select 'bench-' || n, 'bench', 'bench-' || n || '.example', '', '', 'http://127.0.0.1:9/',
        case when n between 1 and {PARTNERS} then '{ORGANISATION}' end
    from generate_series(0, $1::int - 1) n
"""
_ENDPOINTS = """
    insert into webhook_endpoints (application_id, answered_at) select id, now() from applications
    on conflict do nothing
"""

# Of the row with the number n. One name in fifty holds "shop", one in 200,000 "rare"; names come in no order.
_NAME = """(case when n % 50 = 0 then 'shop-' when n % 200000 = 7 then 'rare-' else 'd' end
    || left(md5(n::text), 14) || '.example')"""
_OWNER = "('bench-' || case when n % 2 = 0 then 0 else 1 + n / 2 % greatest($3::int - 1, 1) end)"
_ADDED = "(date_trunc('minute', now()) - n % 100000 * interval '1 minute')"
_LAPSES = "(now() + (1 + n % 90) * interval '1 day')"
_DUE = "now() + interval '1 day' * (1 + random())"  # ten million rows can take hours

# Each takes the numbers of its first and last row, and how many applications there are. Of domains, one in thirty has
# moved away and one in seven has no certificate; one name in fifty is in Secure as well.
_TABLES = {
    "domains": f"""
        insert into domains (domain, product, application_id, application_url, created_at, departed_at, active_until,
            is_active)
        select {_NAME}, product, {_OWNER}, 'https://origin.example', {_ADDED}, case when n % 30 = 0 then now() end,
            case when n % 30 = 0 then '-infinity' when n % 7 = 0 then 'infinity' else {_LAPSES} end, n % 30 > 0
        from generate_series($1::int, $2::int) n
        cross join unnest(case when n % 100 in (1, 4) then array['power', 'secure'] else array['power'] end) product""",
    "certificates": f"""
        insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)
        select {_NAME}, {_OWNER}, 'bench', '', '', now(), {_LAPSES}, now()
        from generate_series($1::int, $2::int) n where n % 7 > 0""",
    "orders": f"""
        insert into orders (domain, application_id, state, kind, hold_until, due_at, renew_at, finished_at)
        select {_NAME}, {_OWNER}, 'issued', 'renewal', now(),
            {_DUE}, now() + random() * interval '60 days', now()
        from generate_series($1::int, $2::int) n""",
    "changes": f"""
        insert into changes (kind, key, version, deleted, digest)
        select 'route', 'power/' || {_NAME}, 1000000 + n, false, n
        from generate_series($1::int, $2::int) n where $3::int > 0""",
    "enrolments": f"""
        insert into enrolments (domain, product, application_id, enrolled_at)
        select {_NAME}, 'power', {_OWNER}, now() - random() * interval '30 days'
        from generate_series($1::int, $2::int) n""",
    "events": f"""
        insert into events (id, application_id, type, domain, sequence, fields, created_at)
        select 'evt_' || lpad(to_hex(n), 34, '0'), {_OWNER},
            case when n % 1000000 = 2 then 'domain.flow.completed' else 'domain.power' end, {_NAME}, 1, '{{}}',
            now() - random() * interval '29 days'
        from generate_series($1::int, $2::int) n""",
    "deliveries": f"""
        insert into deliveries (event_id, application_id, status, settled_at)
        select 'evt_' || lpad(to_hex(n), 34, '0'), {_OWNER},
            case when n % 1000000 = 2 then 'failed' else 'delivered' end, now()
        from generate_series($1::int, $2::int) n""",
    "audit": f"""
        insert into audit (id, way, actor, request_id, organisation_id, application_id, action, subject)
        select 'aud_' || lpad(to_hex(n), 34, '0'), 'api', {_OWNER}, lpad(to_hex(n), 32, '0'),
            case when 1 + n / 2 % greatest($3::int - 1, 1) <= {PARTNERS} and n % 2 > 0 then '{ORGANISATION}' end,
            {_OWNER}, 'power.update', {_NAME}
        from generate_series($1::int, $2::int) n""",
    "monitored_domains": f"""
        insert into monitored_domains (id, application_id, domain, dns_records, state, date_added)
        select 'mon_' || n, {_OWNER}, {_NAME}, '[]',
            case n % 40 when 0 then 'missing' when 1 then 'unchecked' else 'present' end, {_ADDED}
        from generate_series($1::int, $2::int) n""",
    "checks": f"""
        insert into checks (id, application_id, requested_at, due_at)
        select 'mon_' || n, {_OWNER}, null, {_DUE}
        from generate_series($1::int, $2::int) n""",
    "batches": f"""
        insert into batches (id, application_id, kind, submitted_at, due_at)
        select 'bat_' || n, {_OWNER}, 'create', now() - random() * interval '6 days', null
        from generate_series($1::int, $2::int) n""",
    "revocations": f"""
        insert into revocations (domain, application_id, issuer, chain, reason, revoked_at)
        select {_NAME}, {_OWNER}, 'bench', '', 4, now() - random() * interval '80 days'
        from generate_series($1::int, $2::int) n""",
    "shares": f"""
        insert into shares (id, application_id, domain, records, expires_at)
        select lpad(n::text, 32, '0'), {_OWNER}, {_NAME}, '[]', now() + random() * interval '30 days'
        from generate_series($1::int, $2::int) n""",
}
TABLES = tuple(_TABLES)

# What the triggers keep, of all rows at once; of others' domains only what totals read, the longest span.
_KEPT = {
    "domains": f"""
        with added as materialized (
            select application_id, product, created_at, is_active, domain_slot(domain) as slot, count(*) as domains
            from domains where application_id = '{LARGE}' group by 1, 2, 3, 4, 5
            union all
            select application_id, product, domain_span((domain_spans())[1], created_at), is_active,
                domain_slot(domain), count(*)
            from domains where application_id like 'bench-%' and application_id <> '{LARGE}' group by 1, 2, 3, 4, 5
        )
        insert into domain_tallies (application_id, product, span, begins_at, is_active, slot, domains)
        select application_id, product, span, domain_span(span, created_at), is_active, slot, sum(domains)
        from added, unnest(domain_spans()) span
        where application_id = '{LARGE}' or span = (domain_spans())[1] group by 1, 2, 3, 4, 5, 6""",
    "monitored_domains": f"""
        insert into monitored_tallies (application_id, span, begins_at, domains)
        select application_id, span, monitored_span(span, date_added), sum(domains)
        from (select application_id, date_added, count(*) as domains from monitored_domains
            where application_id like 'bench-%' group by 1, 2) added,
            unnest(array['day', 'minute', 'second']) span
        where application_id = '{LARGE}' or span = 'day' group by 1, 2, 3""",
}


def chunks(count: int, tables: Collection[str] = TABLES) -> range:
    """Return the numbers of the steps in which `fill` writes."""
    return range(len(tables) * -(-count // _CHUNK))


async def fill(
    dsn: str,
    count: int,
    track: Iterator[int],
    progress: Callable[[str], None],
    tables: Collection[str] = TABLES,
) -> None:
    """Write `count` rows of each of the tables.

    `track` yields the numbers of `chunks` and draws the progress; `progress` is called with the name of each step after
    that.
    """
    applications = min(APPLICATIONS, count)
    statements = [statement for table, statement in _TABLES.items() if table in tables]
    async with bulk_load(dsn, progress) as connection:
        await connection.execute(_ORGANISATIONS)
        await connection.execute(_APPLICATIONS, applications)
        await connection.execute(_ENDPOINTS)
        steps = -(-count // _CHUNK)
        for number in track:
            first = number % steps * _CHUNK
            await connection.execute(statements[number // steps], first + 1, min(count, first + _CHUNK), applications)
        for table, statement in _KEPT.items():
            if table in tables:
                progress(f"tallies of {table}")
                await connection.execute(statement)
        await connection.execute("update feed_shards set version = version + 1000000 + $1 where shard = 0", count)
