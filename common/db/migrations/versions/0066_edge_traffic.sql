-- What an edge served in the last minute, as it reports it beside its lease; null for an edge that does not.
alter table edge_nodes
    add column requests_last_minute bigint,
    add column failed_last_minute bigint;           -- of these, answered with a status from 500 on

-- Of an edge that has a lease, which belongs to the login that reported it, as for `report_lease`.
create function report_edge_traffic(of_node text, of_requests bigint, of_failed bigint) returns void language sql
    security definer set search_path = public, pg_temp as $$
    update edge_nodes set requests_last_minute = greatest(of_requests, 0), failed_last_minute = greatest(of_failed, 0)
        where node_id = of_node and login = session_user
$$;

revoke execute on function report_edge_traffic from public;
