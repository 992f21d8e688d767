-- Users and their organisations, sessions of the dashboard, and the audit log.

create table organisations (
    id                      text primary key,
    name                    text not null unique,
    created_at              timestamptz not null default now()
);

create table users (
    id                      text primary key,
    email                   text not null unique,           -- lower case
    password_hash           text,                           -- argon2id (PHC string); none: signs in by link only
    is_operator             boolean not null default false, -- sees and changes every application
    created_at              timestamptz not null default now(),
    last_sign_in_at         timestamptz
);

create table memberships (
    user_id                 text not null references users on delete cascade,
    organisation_id         text not null references organisations on delete cascade,
    role                    text not null check (role in ('owner', 'developer', 'viewer')),
    created_at              timestamptz not null default now(),
    primary key (user_id, organisation_id)
);
create index memberships_of_organisation on memberships (organisation_id);

-- A signed-in browser. Its cookie is kept as a hash, so that a copy of the database opens no session.
create table sessions (
    token_hash              bytea primary key,              -- SHA-256
    user_id                 text not null references users on delete cascade,
    address                 text not null,
    user_agent              text not null,
    created_at              timestamptz not null default now(),
    seen_at                 timestamptz not null default now(),
    expires_at              timestamptz not null
);
create index sessions_of_user on sessions (user_id, created_at);
create index sessions_by_expiry on sessions (expires_at);

-- A link that signs in once.
create table sign_in_links (
    token_hash              bytea primary key,              -- SHA-256
    user_id                 text not null references users on delete cascade,
    expires_at              timestamptz not null
);
create index sign_in_links_of_user on sign_in_links (user_id);
create index sign_in_links_by_expiry on sign_in_links (expires_at);

-- None: only operators see the application.
alter table applications
    add column organisation_id text,
    add constraint applications_organisation foreign key (organisation_id) references organisations not valid;

-- Every change, written in the transaction that makes it. Ids sort by time. It refers to no other table: what it
-- describes may be gone.
create table audit (
    id                      text primary key default 'aud_'
        || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint), 14, '0')
        || left(replace(gen_random_uuid()::text, '-', ''), 20),
    at                      timestamptz not null default clock_timestamp(),
    way                     text not null check (way in ('api', 'dashboard', 'command', 'monitor')),
    actor                   text not null,                  -- an application's id, a user's address, a login name
    request_id              text,
    organisation_id         text,
    application_id          text,
    action                  text not null,                  -- such as domain.power
    subject                 text not null,                  -- what was changed: a domain, an id
    before                  jsonb,                          -- only what differs
    after                   jsonb
);
create index audit_of_application on audit (application_id, id) where application_id is not null;
create index audit_of_organisation on audit (organisation_id, id) where organisation_id is not null;
create index audit_of_subject on audit (subject, id);
create index audit_by_age on audit (at);
