-- The attempts that were made under a key: what one of them did whose answer was lost is not refused to the next one.
alter table idempotent_requests add column request_ids text[] not null default '{}';
