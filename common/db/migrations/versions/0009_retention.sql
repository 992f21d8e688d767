-- Event sequences are reviewed some time after a name's first event, and erased when nothing needs them any more
-- (common.db.retention).

alter table event_sequences
    add column review_at            timestamptz not null default now() + interval '30 days';
