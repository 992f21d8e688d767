-- What browsers' flows may ask for. The same configuration is registered once: `digest` is its SHA-256.
create table connect_configurations (
    id text primary key,
    application_id text not null references applications (id) on delete cascade,
    digest bytea not null,
    config jsonb not null,
    secret_generation integer,              -- of the client secret that signed the registering token; none: no token did
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz                  -- none: it stays until it is removed
);
alter table connect_configurations set (autovacuum_vacuum_scale_factor = 0.02);
create unique index connect_configurations_by_digest on connect_configurations (application_id, digest);
create index connect_configurations_by_time on connect_configurations (application_id, created_at desc, id desc);
create index connect_configurations_by_expiry on connect_configurations (expires_at);

-- An origin that was not set with full rights gets neither X-Service-Auth nor signatures.
create or replace function routed_content(of_row domains) returns jsonb language sql immutable as $$
    select jsonb_build_object(
        'domain', of_row.domain, 'product', of_row.product, 'application_id', of_row.application_id,
        'application_url', of_row.application_url, 'root_path_access', of_row.root_path_access,
        'redirect_to', of_row.redirect_to)
        || case when of_row.origin_vouched then '{}'::jsonb else '{"origin_vouched": false}'::jsonb end
$$;
