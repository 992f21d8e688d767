-- How far each edge has applied each shard of the feed: so it is known which of its certificates are old. Null for an
-- edge that does not report it.
alter table edge_nodes add column positions bigint[];

create or replace function renew_edge_lease(
    of_node text, of_holder text, takes boolean, report jsonb, looks boolean,
    out is_held boolean, out edges integer, out feed_version bigint
)
    language plpgsql security definer set search_path to 'public', 'pg_temp' as $$
declare
    lease record;
begin
    select * into lease from jsonb_to_record(report) as given (
        identity text, version bigint, seconds double precision, state text, reason text, host text,
        failing_origins jsonb, software_version text, held_copy_at timestamptz, failed_upgrade_at timestamptz,
        failed_upgrade_reason text, requests bigint, failed bigint, unusable integer, example text, shares_id_of text,
        positions bigint[]);
    if not coalesce(of_node ~ '^[[:print:]]{1,100}$' and of_holder ~ '^[[:print:]]{0,100}$'
        and lease.state in ('serving', 'held', 'stuck', 'unusable') and octet_length(lease.identity) <= 500, false)
        or lease.shares_id_of !~ '^[[:print:]]{1,100}$' or octet_length(lease.failing_origins::text) > 100000
        or jsonb_typeof(lease.failing_origins) <> 'array' or cardinality(lease.positions) > 1024 then
        raise exception 'not a report of an edge' using errcode = 'check_violation';
    end if;
    is_held := true;
    if not exists (select from edge_nodes where node_id = of_node and login = session_user) then
        if (select count(*) from edge_nodes where login = session_user) >= 1000 then
            raise exception 'too many edges under the login %', session_user using errcode = 'check_violation';
        end if;
        insert into edge_nodes (node_id, login, feed_identity, version, lease_until)
            values (of_node, session_user, '', 0, clock_timestamp()) on conflict do nothing;
    end if;
    update edge_nodes set
        feed_identity = lease.identity, version = lease.version, state = lease.state,
        lease_until = clock_timestamp() + make_interval(secs => least(lease.seconds, 60)),
        reason = left(regexp_replace(lease.reason, '[[:cntrl:]]', ' ', 'g'), 1000),
        host = left(regexp_replace(coalesce(lease.host, ''), '[[:cntrl:]]', ' ', 'g'), 255),
        failing_origins = coalesce(lease.failing_origins, failing_origins),
        software_version = left(regexp_replace(lease.software_version, '[[:cntrl:]]', ' ', 'g'), 100),
        held_copy_at = lease.held_copy_at,
        failed_upgrade_at = lease.failed_upgrade_at,
        failed_upgrade_reason = left(regexp_replace(lease.failed_upgrade_reason, '[[:cntrl:]]', ' ', 'g'), 1000),
        requests_last_minute = abs(lease.requests), failed_last_minute = abs(lease.failed),
        unusable_certificates = abs(coalesce(lease.unusable, 0)),
        unusable_example = left(regexp_replace(lease.example, '[[:cntrl:]]', ' ', 'g'), 255),
        holder = of_holder, shares_id_of = lease.shares_id_of, positions = lease.positions
        where node_id = of_node and login = session_user and (takes or coalesce(holder, of_holder) = of_holder);
    if not found then
        is_held := false;
    elsif looks then
        edges := (select count(*) from edge_nodes where lease_until > clock_timestamp());
        feed_version := (select version from feed);
        update feed_timeline set timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
            where timeline <> left(pg_walfile_name(pg_current_wal_lsn()), 8);
    end if;
end
$$;
