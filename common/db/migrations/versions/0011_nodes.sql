-- What runs: monitors hold leases as edges do, and an edge reports beside its version whether it can serve and follow.
create table monitor_nodes (
    node_id                 text primary key,
    host                    text not null,
    issuer                  text not null,                  -- whose certificates it obtains
    stopped                 text[] not null default '{}',   -- work that failed and is not running now
    started_at              timestamptz not null default clock_timestamp(),
    lease_until             timestamptz not null
);

alter table edge_nodes
    add column host text not null default '',
    add column state text not null default 'serving',
    add column reason text;
