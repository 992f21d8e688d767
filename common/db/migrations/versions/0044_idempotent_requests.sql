-- The answers of requests that carry an Idempotency-Key. `key` is a digest of the key with all that it holds for.
-- Without a status the request is running, or its process died.
create table idempotent_requests (
    application_id  text not null references applications on delete cascade,
    key             bytea not null,
    request         bytea not null,                 -- SHA-256 of the body
    started_at      timestamptz not null default now(),
    status          smallint,
    body            bytea,
    primary key (application_id, key)
);
create index idempotent_requests_by_age on idempotent_requests (started_at);
