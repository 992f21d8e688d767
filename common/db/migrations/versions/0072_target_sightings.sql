-- Where cname targets were last seen to lead, by monitors.
create table target_sightings (
    target                  text primary key,
    due_at                  timestamptz not null default now(),
    here_at                 timestamptz,                    -- when it was last seen to lead to our targets
    elsewhere_since         timestamptz,                    -- the first and the last time it was seen to lead elsewhere,
    elsewhere_at            timestamptz                     -- since it last led here
);
alter table target_sightings set (autovacuum_vacuum_scale_factor = 0.02);
create index target_sightings_by_due on target_sightings (due_at);
