-- The work of checking a monitored domain, apart from what is watched and what was found: one row a domain, claimed (see
-- common.claims). A claim and the due list then touch 150 MB of a million domains, which stay in memory, not 2 GB, which
-- do not (seen: claims of 150 took 85 ms in the 99th percentile, most of it waiting for pages), and a check's outcome
-- moves no index of the large table.
--
-- A claim moves no indexed column, so that it rewrites the row alone; hence the room left in each page. What was due
-- leaves a dead entry at the beginning of its index, which every claim passes: vacuumed early.
lock table monitored_domains in access exclusive mode;  -- who adds or deletes meanwhile waits

create table checks (
    id                      text primary key,               -- its monitored domain's
    application_id          text not null,                  -- its monitored domain's
    requested_at            timestamptz default clock_timestamp(), -- added or changed since it was last looked at
    due_at                  timestamptz not null default clock_timestamp(),
    lease_until             timestamptz,
    fence                   bigint not null default 0,      -- moves with every claim, and whenever dns_records change
    attempts                integer not null default 0,
    turned_missing_at       timestamptz,                    -- when a check last found it missing that was all present
    rechecked_at            timestamptz                     -- last checked with something known from before
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

insert into checks
select id, application_id,
    case when last_checked_at is null or last_checked_at < check_requested_at then check_requested_at end,
    due_at, null, fence, attempts, turned_missing_at, rechecked_at
from monitored_domains;

alter table checks add foreign key (id) references monitored_domains on delete cascade;
create index checks_due on checks (due_at);
-- Each application's own lines, so that one of them with much to do keeps no other waiting.
create index checks_requested on checks (application_id, due_at) where requested_at is not null;
create index checks_routine on checks (application_id, due_at) where requested_at is null;
create index checks_rechecked on checks (rechecked_at);
create index checks_turned on checks (turned_missing_at) where turned_missing_at is not null;
analyze checks;

-- A trigger makes every monitored domain due, whichever version of the API adds it.
create function schedule_check() returns trigger language plpgsql as $$
begin
    insert into checks (id, application_id) select id, application_id from added;
    return null;
end
$$;
create trigger schedule_check after insert on monitored_domains
    referencing new table as added for each statement execute function schedule_check();

alter table monitored_domains
    drop column records_version, drop column turned_missing_at, drop column rechecked_at,
    drop column check_requested_at, drop column due_at, drop column lease_until, drop column fence,
    drop column attempts;
