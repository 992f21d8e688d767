-- API keys of users: each opens the API as its user, up to `permission`.
create table user_keys (
    id                      text primary key,               -- key_ and 16 hexadecimal digits; no secret
    token_hash              bytea not null unique,          -- SHA-256 of the key
    user_id                 text not null references users on delete cascade,
    name                    text not null,
    permission              text not null check (permission in ('view', 'change', 'own')),
    created_at              timestamptz not null default now(),
    expires_at              timestamptz not null,
    used_at                 timestamptz
);
alter table user_keys set (autovacuum_vacuum_scale_factor = 0.02);
create index user_keys_of_user on user_keys (user_id, created_at, id);
create index user_keys_by_expiry on user_keys (expires_at);

-- `application_id` names an application or a user: whose key opened the request.
alter table idempotent_requests drop constraint idempotent_requests_application_id_fkey;
