-- Events, their deliveries to webhooks, and sharing links.

alter table applications
    add column previous_webhook_secret  bytea,              -- envelope; signs too until previous_webhook_until
    add column previous_webhook_until   timestamptz;

-- The last sequence given to an event of a domain. Its row's lock orders the domain's events.
create table event_sequences (
    application_id          text not null references applications on delete cascade,
    domain                  text not null,
    subdomain               text not null default '',       -- empty: the apex
    last                    bigint not null default 1,
    primary key (application_id, domain, subdomain)
);

-- What happened. Written once, in the transaction that made it happen. Ids sort by time, so that lists page by them.
create table events (
    id                      text primary key default 'evt_'
        || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint), 14, '0')
        || left(replace(gen_random_uuid()::text, '-', ''), 20),
    application_id          text not null references applications on delete cascade,
    type                    text not null,
    domain                  text,                           -- none: it is about the application itself
    subdomain               text,
    sequence                bigint,
    fields                  json not null,                  -- the payload but for the columns; json keeps their order
    created_at              timestamptz not null default now()
);
create index events_of_application on events (application_id, id);
create index events_of_domain on events (application_id, domain, id) where domain is not null;
create index events_by_age on events (created_at);

-- Where an application's events go to: its webhook_url, and how that fares. A row stands from the first delivery on.
create table webhook_endpoints (
    application_id          text primary key references applications on delete cascade,
    failing_since           timestamptz,                    -- none: the last attempt succeeded
    last_failed_at          timestamptz,
    warned_at               timestamptz,                    -- said that it will be disabled
    disabled_at             timestamptz,                    -- nothing is sent until it is enabled again
    last_error              text
);

-- An event on its way to its webhook. Claimed: see common.claims.
create table deliveries (
    event_id                text primary key references events on delete cascade,
    application_id          text not null references applications on delete cascade,
    status                  text not null default 'pending'
        check (status in ('pending', 'delivered', 'failed', 'superseded')),
    superseded_by           text,                           -- the event that made this one old news
    due_at                  timestamptz,                    -- none: settled
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,     -- claims
    failures                integer not null default 0,     -- the place in the schedule of retries
    last_error              text,
    log                     json not null default '[]',     -- the latest attempts, oldest first: {at, status, error}
    settled_at              timestamptz,
    check ((status = 'pending') = (due_at is not null)),
    check ((status = 'pending') = (settled_at is null))
);
create index deliveries_due on deliveries (application_id, due_at) where status = 'pending';
create index deliveries_under_way on deliveries (application_id) where lease_until is not null;
create index deliveries_of_application on deliveries (application_id, event_id);
create index deliveries_by_status on deliveries (application_id, status, event_id);

-- Sharing links: what /share/<id> shows to every holder of the link.
create table shares (
    id                      text primary key check (octet_length(id) >= 22),  -- 128 bits of chance and more
    application_id          text not null references applications on delete cascade,
    domain                  text not null,
    subdomain               text,
    records                 json not null,
    created_at              timestamptz not null default now(),
    expires_at              timestamptz not null
);
create index shares_by_expiry on shares (expires_at);
