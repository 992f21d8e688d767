-- The root of the internal authority, which every monitor signs with.
create table internal_root (
    only_row                boolean primary key default true check (only_row),
    certificate             text not null,                    -- PEM
    private_key             bytea not null,                   -- envelope
    created_at              timestamptz not null default now()
);
