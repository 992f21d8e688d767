-- Of the certificates that clients asked an edge for, how many it cannot use; 0 for an edge that does not report it.
alter table edge_nodes
    add column unusable_certificates integer not null default 0,
    add column unusable_example text;               -- the domain of one of them

-- Of an edge that has a lease, which belongs to the login that reported it, as for `report_lease`.
create function report_edge_certificates(of_node text, of_unusable integer, of_example text) returns void language sql
    security definer set search_path = public, pg_temp as $$
    update edge_nodes set unusable_certificates = greatest(of_unusable, 0),
        unusable_example = left(regexp_replace(of_example, '[[:cntrl:]]', ' ', 'g'), 255)
        where node_id = of_node and login = session_user
$$;

revoke execute on function report_edge_certificates from public;
