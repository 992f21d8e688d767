-- Domains that move in without a gap: enrolled, and served with a certificate of their own, before their DNS leads here.
-- The row is also the work of looking at the domain's DNS (claimed: see common.claims).
create table preparations (
    id                  bigint generated always as identity primary key,
    domain              text not null check (octet_length(domain) <= 253),
    application_id      text not null references applications on delete cascade,
    product             text not null check (product in ('power', 'secure')),
    application_url     text,
    root_path_access    text[],
    redirect_to         text,
    state               text not null default 'waiting' check (state in ('waiting', 'issuing', 'prepared', 'active')),
    reason              text,
    created_at          timestamptz not null default now(),
    expires_at          timestamptz not null,
    asked_at            timestamptz not null default now(),
    delegated_at        timestamptz,
    prepared_at         timestamptz,
    active_at           timestamptz,
    due_at              timestamptz default now(),
    lease_until         timestamptz,
    fence               bigint not null default 0,
    attempts            integer not null default 0,
    last_error          text,
    unique (domain, application_id)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index preparations_due on preparations (due_at) where due_at is not null;
create index preparations_of_application on preparations (application_id, domain);
create index preparations_by_age on preparations (expires_at) where due_at is null;
