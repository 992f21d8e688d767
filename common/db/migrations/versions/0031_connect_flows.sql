-- Flows of the connect modal: one person's way from a partner's configuration to live DNS records.

-- The row is also the work of it (claimed: see common.claims). Credentials are never part of it.
create table connect_flows (
    id                      text primary key,
    application_id          text not null references applications,
    job_id                  text not null,
    user_id                 text,
    state                   text not null,                  -- common.connect.states
    version                 bigint not null default 1,      -- moves with every change that a person can see
    config                  jsonb not null,                 -- as sent, without tokens
    warnings                jsonb not null default '[]',
    domain                  text check (octet_length(domain) <= 253), -- the apex; none: not chosen yet
    subdomain               text,
    requested               jsonb not null default '[]',    -- the records, placeholders resolved, and their purposes
    looked                  jsonb,                          -- what the last look found: provider, ways, conflicts
    plan                    jsonb,                          -- what has to change, and the digest it holds for
    way                     text,                           -- by which it was or is applied
    journal                 jsonb not null default '[]',    -- record sets written, each with what was there before
    statuses                jsonb not null default '[]',    -- of the requested records, in their order
    enrolments              jsonb not null default '[]',    -- what the live records enrol, and what came of it
    handover                jsonb,                          -- Domain Connect: hash of the state expected back
    error                   jsonb,                          -- why the flow does not go on, in words for people
    created_at              timestamptz not null default clock_timestamp(),
    updated_at              timestamptz not null default clock_timestamp(),
    since                   timestamptz,                    -- when the records began to be looked for
    looks                   integer not null default 0,     -- at the records, since then
    completed_at            timestamptz,                    -- when domain.flow.completed was recorded
    added_at                timestamptz,                    -- when domain.added was recorded
    erase_at                timestamptz not null,
    due_at                  timestamptz default clock_timestamp(), -- none: nothing happens by itself
    lease_until             timestamptz,
    fence                   bigint not null default 0,
    attempts                integer not null default 0,
    last_error              text
) with (fillfactor = 70);
create index connect_flows_due on connect_flows (due_at) where due_at is not null;
create index connect_flows_open on connect_flows (application_id) where due_at is not null;
create index connect_flows_of_application on connect_flows (application_id, id);
create index connect_flows_by_age on connect_flows (erase_at);

alter table applications add column connect boolean not null default true; -- has subscribed to the connect modal

-- Sharing links may hold a whole configuration, with its flow's names.
alter table shares add column config jsonb; -- none: the records alone
alter table shares add column job_id text;
alter table shares add column user_id text;
alter table shares alter column domain drop not null;
