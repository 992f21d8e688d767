-- An edge writes its lease through functions that run with their owner's rights, and has none on the table. A lease
-- belongs to the login that reported it: an edge with a login of its own can neither end nor change another's, not even
-- under the other's node id. What it reports is brought into form here, because others read and print it.

alter table edge_nodes add column login text not null default session_user;
alter table edge_nodes drop constraint edge_nodes_pkey, add primary key (node_id, login);

-- `of_failing`: null leaves what was reported before.
create function report_lease(of_node text, of_identity text, of_version bigint, seconds double precision,
    of_state text, of_reason text, of_host text, of_failing jsonb) returns void language plpgsql
    security definer set search_path = public, pg_temp as $$
declare
    until timestamptz := clock_timestamp() + make_interval(secs => least(seconds, 60));
    reason_shown text := left(regexp_replace(of_reason, '[[:cntrl:]]', ' ', 'g'), 1000);
    host_shown text := left(regexp_replace(of_host, '[[:cntrl:]]', ' ', 'g'), 255);
begin
    if of_node !~ '^[[:print:]]{1,100}$' or of_state not in ('serving', 'held', 'stuck', 'unusable')
        or octet_length(of_identity) > 500 or octet_length(of_failing::text) > 100000
        or jsonb_typeof(of_failing) <> 'array' then
        raise exception 'not a report of an edge' using errcode = 'check_violation';
    end if;
    update edge_nodes set feed_identity = of_identity, version = of_version, lease_until = until, state = of_state,
        reason = reason_shown, host = host_shown, failing_origins = coalesce(of_failing, failing_origins)
        where node_id = of_node and login = session_user;
    if found then
        return;
    end if;
    if (select count(*) from edge_nodes where login = session_user) >= 1000 then
        raise exception 'too many edges under the login %', session_user using errcode = 'check_violation';
    end if;
    insert into edge_nodes (node_id, login, feed_identity, version, lease_until, state, reason, host, failing_origins)
        values (of_node, session_user, of_identity, of_version, until, of_state, reason_shown, host_shown,
            coalesce(of_failing, '[]'));
end $$;

create function end_lease(of_node text) returns void language sql
    security definer set search_path = public, pg_temp as $$
    delete from edge_nodes where node_id = of_node and login = session_user
$$;

revoke execute on function report_lease, end_lease from public;

-- What transactions lock by name (common.db.locks).
create table lock_slots (
    scope                   text not null,
    slot                    integer not null,
    primary key (scope, slot)
);
insert into lock_slots
    select 'domain', n from generate_series(0, 4095) n
    union all select 'ca_ledger', n from generate_series(0, 15) n
    union all values ('roles', 0), ('redirects', 0), ('moves', 0);
