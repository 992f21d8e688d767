-- Origins that edges cannot reach, for each application whose domains lead there. Written by monitors, from what edges
-- report of origins (`edge_nodes.failing_origins`).
create table origin_outages (
    application_id          text not null references applications on delete cascade,
    origin                  text not null,                    -- as the URLs of its domains begin: https://host:port
    fault                   text not null,                    -- common.origin_faults.OriginFault
    since                   timestamptz not null default now(),
    seen_at                 timestamptz not null default now(),  -- when it was last known to fail
    reported_at             timestamptz,                      -- when its event was recorded; none: not long enough yet
    domains                 bigint not null default 0,        -- that lead there, when it was last seen
    example                 text,                             -- one of them
    primary key (application_id, origin)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index origin_outages_seen on origin_outages (seen_at);
insert into lock_slots values ('origins', 0);
