-- How far each edge has applied each shard of the feed: so it is known which of its certificates are old.
alter table edge_nodes add column positions bigint[];

-- Of an edge that has a lease, which belongs to the login that reported it, as for `report_lease`.
create function report_edge_positions(of_node text, of_positions bigint[])
    returns void language plpgsql security definer set search_path to 'public', 'pg_temp' as $$
begin
    if cardinality(of_positions) > 1024 or array_position(of_positions, null) is not null then
        raise exception 'not a report of an edge' using errcode = 'check_violation';
    end if;
    update edge_nodes set positions = of_positions where node_id = of_node and login = session_user;
end
$$;
revoke execute on function report_edge_positions from public;
