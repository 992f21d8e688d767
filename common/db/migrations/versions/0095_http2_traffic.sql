-- One more figure of traffic: requests over HTTP/2. It has a column of its own, so that programs of before can read
-- the rows. Edges of before report without it: that counts as none.
alter table traffic add column http2_requests bigint not null default 0;

create or replace function report_traffic(of_at timestamptz, of_entries jsonb)
    returns void language plpgsql security definer set search_path to 'public', 'pg_temp' set lock_timeout to '1s' as $$
declare
    figures constant integer := 20;   -- in `counts`; behind them comes the number of requests over HTTP/2
    interval_at timestamptz;
    used integer;
    span record;
begin
    if jsonb_typeof(of_entries) <> 'array' or jsonb_array_length(of_entries) > 1000
        or octet_length(of_entries::text) > 1000000 then
        raise exception 'not a report of traffic' using errcode = 'check_violation';
    end if;
    if of_at not between now() - interval '65 minutes' and now() then   -- an edge whose clock is wrong
        of_at := now();
    end if;
    for span in select * from (values (5, 2000, interval '2 days'), (60, 4000, interval '30 days'))
        as spans(minutes, most, kept) loop
        interval_at := date_bin(make_interval(mins => span.minutes), of_at, 'epoch');
        insert into traffic_reports as r (login, minutes, at, erase_at)
            values (session_user, span.minutes, interval_at, interval_at + span.kept)
            on conflict (login, minutes, at) do update set rows = r.rows returning rows into used;
        with entries as materialized (
            select e ->> 0 as application_id, e ->> 1 as domain, place,
                array(select least(greatest(n::bigint, 0), 1000000000000)
                    from jsonb_array_elements_text(e -> 2) with ordinality as each(n, place) order by place) as counts
            from jsonb_array_elements(of_entries) with ordinality as given(e, place)
        ), known as materialized (
            select e.*, exists (select from traffic t where t.application_id = e.application_id
                and t.domain = e.domain and t.minutes = span.minutes and t.at = interval_at
                and t.login = session_user) as is_there
            from entries e
            where cardinality(counts) in (figures, figures + 1) and case when e.domain = ''
                then exists (select from applications a where a.id = e.application_id)
                else exists (select from domains d
                    where d.domain = e.domain and d.application_id = e.application_id) end
        ), updated as (
            update traffic t set http2_requests = t.http2_requests + coalesce(k.counts[figures + 1], 0), counts = array(
                select mine + theirs
                from unnest(t.counts, k.counts[:figures]) with ordinality as each(mine, theirs, place) order by place)
            from known k where k.is_there and t.application_id = k.application_id and t.domain = k.domain
                and t.minutes = span.minutes and t.at = interval_at and t.login = session_user
        ), inserted as (
            insert into traffic (application_id, domain, minutes, at, login, counts, http2_requests, erase_at)
            select application_id, domain, span.minutes, interval_at, session_user, counts[:figures],
                coalesce(counts[figures + 1], 0), interval_at + span.kept
            from known where not is_there order by place limit greatest(span.most - used, 0)
            returning 1
        )
        update traffic_reports r set rows = r.rows + (select count(*) from inserted)
            where r.login = session_user and r.minutes = span.minutes and r.at = interval_at;
    end loop;
end
$$;
