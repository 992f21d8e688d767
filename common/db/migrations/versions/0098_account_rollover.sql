-- The next key of our ACME accounts, from the request for it until every CA has taken it.
create table acme_key_rollover (
    only_row                boolean primary key default true check (only_row),
    requested_at            timestamptz not null default now(),
    private_key             bytea,                            -- envelope, as acme_key's; null until a monitor makes it
    thumbprint              text,
    last_error              text
);
