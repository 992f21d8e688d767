-- Links to a page that shows a partner's customer how one domain is: one for each application and domain.
create table status_links (
    id                  text primary key,
    application_id      text not null references applications on delete cascade,
    domain              text not null check (octet_length(domain) <= 253),
    created_at          timestamptz not null default now(),
    expires_at          timestamptz not null,
    unique (application_id, domain)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index status_links_by_age on status_links (expires_at);
