-- When a label is reviewed, and erased if nothing needs it; from its making on, and from each time that it is shown.
alter table acme_delegations add column review_at timestamptz not null default now() + interval '30 days';
create index acme_delegations_by_review on acme_delegations (review_at);
alter table acme_delegations set (autovacuum_vacuum_scale_factor = 0.02);
