-- What an edge reports beside its lease, whenever it changes. `version` is the feed's; all of these are null for an edge
-- that does not report them, as one of an earlier version.
alter table edge_nodes
    add column software_version text,
    add column held_copy_at timestamptz,            -- since when a copy waits for the operator
    add column failed_upgrade_at timestamptz,       -- null once an upgrade has succeeded
    add column failed_upgrade_reason text;

-- Describes an edge that has a lease, which belongs to the login that reported it, as for `report_lease`.
create function describe_edge(of_node text, of_software_version text, of_held_copy_at timestamptz,
    of_failed_upgrade_at timestamptz, of_failed_upgrade_reason text) returns void language sql
    security definer set search_path = public, pg_temp as $$
    update edge_nodes set software_version = left(regexp_replace(of_software_version, '[[:cntrl:]]', ' ', 'g'), 100),
        held_copy_at = of_held_copy_at,
        failed_upgrade_at = of_failed_upgrade_at,
        failed_upgrade_reason = left(regexp_replace(of_failed_upgrade_reason, '[[:cntrl:]]', ' ', 'g'), 1000)
        where node_id = of_node and login = session_user
$$;

revoke execute on function describe_edge from public;
