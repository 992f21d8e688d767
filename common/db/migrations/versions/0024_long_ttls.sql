-- As of the last check. An answer from a resolver's cache may then be older than that check.

alter table checks add column has_long_ttl boolean not null default false;
