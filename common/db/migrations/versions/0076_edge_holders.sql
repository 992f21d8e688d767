-- `holder`: a name that the process which reports this lease made for itself; null for one of an earlier version.
-- `shares_id_of`: the node id in its state directory, where another process reports under that one.
alter table edge_nodes
    add column holder text,
    add column shares_id_of text;

-- Whether this lease is the holder's, or does not exist yet; with `takes` it becomes so. Belongs to a login as for
-- `report_lease`.
create function hold_edge_lease(of_node text, of_holder text, takes boolean, of_shares_id_of text) returns boolean
    language plpgsql security definer set search_path = public, pg_temp as $$
begin
    if of_holder !~ '^[[:print:]]{1,100}$' or of_shares_id_of !~ '^[[:print:]]{1,100}$' then
        raise exception 'not a report of an edge' using errcode = 'check_violation';
    end if;
    if not takes and exists
        (select from edge_nodes where node_id = of_node and login = session_user and holder <> of_holder) then
        return false;
    end if;
    update edge_nodes set holder = of_holder, shares_id_of = of_shares_id_of
        where node_id = of_node and login = session_user;
    return true;
end $$;

-- Ends the lease unless it is another holder's.
create function end_edge_lease(of_node text, of_holder text) returns void language sql
    security definer set search_path = public, pg_temp as $$
    delete from edge_nodes where node_id = of_node and login = session_user and coalesce(holder = of_holder, true)
$$;

revoke execute on function hold_edge_lease, end_edge_lease from public;
