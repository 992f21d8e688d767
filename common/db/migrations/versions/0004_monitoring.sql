-- Monitored domains, their checks, and batches.

-- A name whose records are watched for one application: the apex, or one subdomain of it. Two applications may watch
-- the same. The row is also the work of checking it (claimed: see common.claims). A claim moves no indexed column, so
-- that it rewrites the row alone; hence the room left in each page. What was due leaves a dead entry at the beginning of
-- the due list, which every claim passes: a million domains left 200,000 before the usual vacuum (seen: 30 ms a claim).
create table monitored_domains (
    id                      text primary key,
    application_id          text not null references applications,
    domain                  text not null check (octet_length(domain) <= 253), -- registrable, lower-case A-labels
    subdomain               text,                           -- none: the apex
    user_id                 text,
    job_id                  text,
    user_email              text,
    source                  text not null default 'api' check (source in ('api', 'connect')),
    date_added              timestamptz not null default clock_timestamp(),
    dns_records             jsonb not null,                 -- array of records as the API shows them; hosts relative to the apex
    records_version         bigint not null default 1,      -- moves whenever dns_records change
    state                   text not null default 'unchecked' check (state in ('unchecked', 'present', 'missing')),
    records_present         jsonb,                          -- as far as is known from the last check and those before
    records_missing         jsonb,
    missing_records_last_detected timestamptz,
    last_checked_at         timestamptz,                    -- when the last check began, whatever it could find out
    evidence                jsonb,                          -- of the last check: who answered what, when
    reported_missing        jsonb,                          -- what was last reported to its partner; none: nothing is missing
    alarm_held_at           timestamptz,                    -- since when an alarm to its partner is held back
    turned_missing_at       timestamptz,                    -- when a check last found it missing that was all present
    rechecked_at            timestamptz,                    -- last checked with something known from before
    check_requested_at      timestamptz not null default clock_timestamp(), -- last added or changed
    due_at                  timestamptz not null default clock_timestamp(),
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
create unique index monitored_once on monitored_domains (application_id, domain, coalesce(subdomain, ''));
create index monitored_by_date on monitored_domains (application_id, date_added, id);
create index monitored_due on monitored_domains (due_at);
create index monitored_requested on monitored_domains (due_at) -- those first, however much else is due
    where last_checked_at is null or last_checked_at < check_requested_at;
create index monitored_rechecked on monitored_domains (rechecked_at);
create index monitored_turned on monitored_domains (turned_missing_at) where turned_missing_at is not null;
create index monitored_held on monitored_domains (alarm_held_at) where alarm_held_at is not null;

-- How many monitored domains an application added on each day, within it in each minute, and within that in each second:
-- a page far down a list of a million is found by adding up these, not by walking a million rows.
create table monitored_tallies (
    application_id          text not null,
    span                    text not null check (span in ('day', 'minute', 'second')),
    begins_at               timestamptz not null,           -- UTC
    domains                 bigint not null,
    primary key (application_id, span, begins_at)
) with (fillfactor = 50);

create function monitored_span(span text, added timestamptz) returns timestamptz language sql immutable as $$
    select date_bin(('1 ' || span)::interval, added, '2000-01-01 00:00:00+00')
$$;

-- By upsert in both directions, the one statement in which a row that comes and goes at the same time loses no count.
create function count_monitored() returns trigger language plpgsql as $$
begin
    insert into monitored_tallies as tally (application_id, span, begins_at, domains)
        select application_id, span, monitored_span(span, date_added), count(*)
        from moved, unnest(array['day', 'minute', 'second']) span group by 1, 2, 3 order by 1, 2, 3
    on conflict (application_id, span, begins_at) do update set
        domains = tally.domains + case tg_op when 'INSERT' then 1 else -1 end * excluded.domains;
    if tg_op = 'DELETE' then
        delete from monitored_tallies tally using moved, unnest(array['day', 'minute', 'second']) span
            where tally.application_id = moved.application_id and tally.span = span.span and tally.domains = 0
            and tally.begins_at = monitored_span(span.span, moved.date_added);
    end if;
    return null;
end
$$;

-- In which second the domain was added before which `skip` others were, from `first` on and before `last`, and how
-- many of those were added in that very second. No row if there are not so many.
create function find_monitored(of_application text, first timestamptz, last timestamptz, skip bigint)
    returns table (begins_at timestamptz, before bigint) language plpgsql stable as $$
declare
    each_span text;
begin
    foreach each_span in array array['day', 'minute', 'second'] loop
        select tally.begins_at, find_monitored.skip - tally.earlier into first, skip from (
            select t.begins_at, t.domains, sum(t.domains) over (order by t.begins_at) - t.domains as earlier
            from monitored_tallies t where t.application_id = of_application and t.span = each_span
                and t.begins_at >= find_monitored.first and t.begins_at < find_monitored.last
        ) tally
        where tally.earlier + tally.domains > find_monitored.skip order by tally.begins_at limit 1;
        if not found then
            return;
        end if;
        last := first + ('1 ' || each_span)::interval;
    end loop;
    return query select first, skip;
end
$$;

create trigger count_added after insert on monitored_domains
    referencing new table as moved for each statement execute function count_monitored();
create trigger count_removed after delete on monitored_domains
    referencing old table as moved for each statement execute function count_monitored();

-- What the checks say of themselves: one row, written by whichever monitor looked last. Old news is bad news.
create table monitor_health (
    only_row                boolean primary key default true check (only_row),
    is_healthy              boolean not null,
    reason                  text,                           -- why not, in words for the operator
    executed_at             timestamptz                     -- none: no check yet
);
insert into monitor_health (is_healthy, reason) values (false, 'no monitor has looked yet');

-- Whether an operator has let alarms out in spite of their number: one row, locked by a transaction that raises some.
create table mass_guard (
    only_row                boolean primary key default true check (only_row),
    released_until          timestamptz not null default '-infinity'
);
insert into mass_guard default values;

-- A bulk request: accepted with its items in one transaction, worked off item by item. Claimed: see common.claims.
create table batches (
    id                      text primary key,               -- the request_id
    application_id          text not null references applications,
    kind                    text not null check (kind in ('create', 'delete')),
    number                  bigint generated always as identity, -- an application's batches run in this order
    submitted_at            timestamptz not null default clock_timestamp(),
    due_at                  timestamptz,                    -- none: every item has its outcome
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    failures                integer not null default 0,     -- for reasons of ours, since an item was done last
    last_error              text
);
create index batches_due on batches (due_at) where due_at is not null;
create index batches_open on batches (application_id, number) where due_at is not null;
create index batches_by_age on batches (submitted_at);

create table batch_items (
    batch_id                text not null references batches on delete cascade,
    number                  integer not null,               -- as sent, from 0
    domain                  text,                           -- normalised, or as sent if it is no name
    subdomain               text,
    request                 jsonb not null,                 -- what is to be done, parsed; {} if it never will be
    outcome                 text check (outcome in ('succeeded', 'failed')), -- none: not done yet
    reason                  text,                           -- why it failed
    primary key (batch_id, number)
);
