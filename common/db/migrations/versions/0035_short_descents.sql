-- From when on the list must be read to find the domain before which `skip` others were added, and how many of those
-- were added from then on: at most `near`, which an index has side by side, or those of one second. No row if there are
-- not so many domains. Without a status, of both.
drop function find_domains(text, text, boolean, bigint);
create function find_domains(of_application text, of_product text, of_status boolean, skip bigint,
    near bigint default 0) returns table (begins_at timestamptz, before bigint) language plpgsql stable as $$
declare
    each_span interval;
    first timestamptz := '-infinity';
    last timestamptz := 'infinity';
begin
    foreach each_span in array domain_spans() loop
        exit when skip <= near;
        select tally.begins_at, find_domains.skip - tally.earlier into first, skip from (
            select t.begins_at, sum(t.domains) as domains,
                sum(sum(t.domains)) over (order by t.begins_at) - sum(t.domains) as earlier
            from domain_tallies t
            where t.application_id = of_application and t.product = of_product and t.span = each_span
                and t.begins_at >= first and t.begins_at < last
                and (of_status is null or t.is_active = of_status)
            group by t.begins_at
        ) tally
        where tally.earlier + tally.domains > find_domains.skip order by tally.begins_at limit 1;
        if not found then
            return;
        end if;
        last := first + each_span;
    end loop;
    return query select first, skip;
end
$$;
