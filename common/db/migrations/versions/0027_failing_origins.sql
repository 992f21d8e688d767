-- What an edge could not connect to in the last minute: a short list of {origin, fault}, written with its lease.
alter table edge_nodes
    add column failing_origins jsonb not null default '[]';
